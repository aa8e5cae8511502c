//! Rows of a result as documents: numbers and lists of them, written as msgspec writes Python's numbers.

use super::write;
use crate::Datatype;
use crate::shape::element_count;

/// Appends a row as JSON: a number, or lists within lists; what is not finite is null.
///
/// `None` where the datatype has no such form, or `data` is not what the sizes say; something may be appended then.
pub fn write_row(out: &mut Vec<u8>, datatype: Datatype, sizes: &[i64], data: &[u8]) -> Option<()> {
    let size = datatype.size()?;
    if element_count(sizes)?.checked_mul(size)? != data.len() {
        return None;
    }
    match datatype {
        Datatype::Bool => lists(out, sizes, data, |out, [byte]| {
            out.extend_from_slice(if byte == 0 { b"false" } else { b"true" });
        }),
        Datatype::Uint8 => lists(out, sizes, data, |out, bytes| write::integer(out, u8::from_le_bytes(bytes))),
        Datatype::Uint16 => lists(out, sizes, data, |out, bytes| write::integer(out, u16::from_le_bytes(bytes))),
        Datatype::Uint32 => lists(out, sizes, data, |out, bytes| write::integer(out, u32::from_le_bytes(bytes))),
        Datatype::Uint64 => lists(out, sizes, data, |out, bytes| write::integer(out, u64::from_le_bytes(bytes))),
        Datatype::Int8 => lists(out, sizes, data, |out, bytes| write::integer(out, i8::from_le_bytes(bytes))),
        Datatype::Int16 => lists(out, sizes, data, |out, bytes| write::integer(out, i16::from_le_bytes(bytes))),
        Datatype::Int32 => lists(out, sizes, data, |out, bytes| write::integer(out, i32::from_le_bytes(bytes))),
        Datatype::Int64 => lists(out, sizes, data, |out, bytes| write::integer(out, i64::from_le_bytes(bytes))),
        Datatype::Fp32 => lists(out, sizes, data, |out, bytes| real(out, f32::from_le_bytes(bytes).into())),
        Datatype::Fp64 => lists(out, sizes, data, |out, bytes| real(out, f64::from_le_bytes(bytes))),
        Datatype::Fp16 | Datatype::Bf16 | Datatype::Bytes => return None,
    }
    Some(())
}

/// Lists within lists around elements of `SIZE` bytes; there are as many as the sizes say.
fn lists<const SIZE: usize>(
    out: &mut Vec<u8>,
    sizes: &[i64],
    data: &[u8],
    write: impl Fn(&mut Vec<u8>, [u8; SIZE]) + Copy,
) {
    let Some((&count, inner)) = sizes.split_first() else {
        return data.as_chunks().0.iter().for_each(|&element| write(out, element));
    };
    out.push(b'[');
    let count = usize::try_from(count).unwrap_or(0);
    let bytes = data.len() / count.max(1);
    for index in 0..count {
        if index > 0 {
            out.push(b',');
        }
        lists(out, inner, &data[index * bytes..(index + 1) * bytes], write);
    }
    out.push(b']');
}

/// A double: the fewest digits that lead back to it, with a point or an exponent.
pub fn real(out: &mut Vec<u8>, value: f64) {
    /// From here on an exponent is written; msgspec's has no plus sign.
    const LARGE: f64 = 1e16;
    if !value.is_finite() {
        return out.extend_from_slice(b"null");
    }
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(value);
    match if value.abs() < LARGE { None } else { text.split_once('+') } {
        Some((mantissa, exponent)) => {
            out.extend_from_slice(mantissa.as_bytes());
            out.extend_from_slice(exponent.as_bytes());
        }
        None => out.extend_from_slice(text.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(datatype: Datatype, sizes: &[i64], data: &[u8]) -> Option<String> {
        let mut out = Vec::new();
        write_row(&mut out, datatype, sizes, data)?;
        Some(String::from_utf8(out).unwrap())
    }

    fn doubles(sizes: &[i64], values: &[f64]) -> String {
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        written(Datatype::Fp64, sizes, &data).unwrap()
    }

    #[test]
    fn sizes_become_lists_within_lists() {
        assert_eq!(doubles(&[], &[1.5]), "1.5");
        assert_eq!(doubles(&[3], &[1.0, 2.0, -0.5]), "[1.0,2.0,-0.5]");
        assert_eq!(doubles(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), "[[1.0,2.0],[3.0,4.0]]");
        assert_eq!(doubles(&[0], &[]), "[]");
        assert_eq!(doubles(&[2, 0], &[]), "[[],[]]");
    }

    #[test]
    fn what_is_not_finite_is_null() {
        assert_eq!(doubles(&[3], &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]), "[null,null,null]");
    }

    #[test]
    fn exponents_stand_as_msgspec_writes_them() {
        assert_eq!(doubles(&[4], &[1e16, -1.5e300, 9.9e15, 1e-6]), "[1e16,-1.5e300,9900000000000000.0,1e-6]");
    }

    #[test]
    fn each_datatype_has_its_form() {
        assert_eq!(written(Datatype::Bool, &[2], &[1, 0]).unwrap(), "[true,false]");
        assert_eq!(written(Datatype::Int8, &[2], &[255, 1]).unwrap(), "[-1,1]");
        assert_eq!(written(Datatype::Uint64, &[], &u64::MAX.to_le_bytes()).unwrap(), u64::MAX.to_string());
        assert_eq!(written(Datatype::Fp32, &[], &0.1_f32.to_le_bytes()).unwrap(), "0.10000000149011612");
        for (datatype, data) in [(Datatype::Fp16, &[0, 0][..]), (Datatype::Bytes, &[]), (Datatype::Fp32, &[0; 3])] {
            assert_eq!(written(datatype, &[], data), None, "{datatype}");
        }
    }
}
