//! The elements of a tensor as numbers, whatever its datatype.

use alipes_protocol::Datatype;

/// Reads one element.
pub(super) type ReadElement = fn(&[u8]) -> f64;

/// The bytes of an element and what reads it; none for texts.
pub(super) fn elements_of(datatype: Datatype) -> Option<(usize, ReadElement)> {
    let row: (usize, ReadElement) = match datatype {
        Datatype::Bool | Datatype::Uint8 => (1, |bytes| number(bytes, |[byte]| f64::from(byte))),
        Datatype::Int8 => (1, |bytes| number(bytes, |bytes| f64::from(i8::from_ne_bytes(bytes)))),
        Datatype::Uint16 => (2, |bytes| number(bytes, |bytes| f64::from(u16::from_ne_bytes(bytes)))),
        Datatype::Int16 => (2, |bytes| number(bytes, |bytes| f64::from(i16::from_ne_bytes(bytes)))),
        Datatype::Uint32 => (4, |bytes| number(bytes, |bytes| f64::from(u32::from_ne_bytes(bytes)))),
        Datatype::Int32 => (4, |bytes| number(bytes, |bytes| f64::from(i32::from_ne_bytes(bytes)))),
        Datatype::Uint64 => (8, |bytes| number(bytes, |bytes| u64::from_ne_bytes(bytes) as f64)),
        Datatype::Int64 => (8, |bytes| number(bytes, |bytes| i64::from_ne_bytes(bytes) as f64)),
        Datatype::Fp32 => (4, |bytes| number(bytes, |bytes| f64::from(f32::from_ne_bytes(bytes)))),
        Datatype::Fp64 => (8, |bytes| number(bytes, f64::from_ne_bytes)),
        Datatype::Fp16 => (2, |bytes| number(bytes, |bytes| half(u16::from_ne_bytes(bytes)))),
        // The upper half of a float of 32 bits.
        Datatype::Bf16 => {
            (2, |bytes| number(bytes, |bytes| f64::from(f32::from_bits(u32::from(u16::from_ne_bytes(bytes)) << 16))))
        }
        Datatype::Bytes => return None,
    };
    Some(row)
}

/// The number that some bytes are; none of another length are handed in.
fn number<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f64) -> f64 {
    bytes.try_into().map_or(f64::NAN, read)
}

/// A float of 16 bits. Source: IEEE 754, binary16.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from((bits >> 10) & 0x1f), f64::from(bits & 0x3ff));
    let size = match exponent {
        0 => fraction / 1024.0 * 2_f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2_f64.powi(exponent - 15),
    };
    if bits & 0x8000 == 0 { size } else { -size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_read_as_the_standard_says() {
        for (bits, value) in [
            (0x0000, 0.0),
            (0x0001, 2_f64.powi(-24)),
            (0x3555, 0.333_251_953_125),
            (0x3c00, 1.0),
            (0x7bff, 65_504.0),
            (0x7c00, f64::INFINITY),
            (0xc000, -2.0),
        ] {
            assert_eq!(half(bits), value, "{bits:#06x}");
        }
        assert!(half(0x7e00).is_nan());
        let (_, brain_float) = elements_of(Datatype::Bf16).unwrap();
        assert_eq!(brain_float(&0xc040_u16.to_ne_bytes()), -3.0);
    }

    #[test]
    fn every_datatype_but_texts_has_elements_of_its_size() {
        for row in alipes_protocol::datatype::TABLE {
            assert_eq!(elements_of(row.datatype).map(|(size, _)| size), row.size, "{}", row.name);
        }
    }
}
