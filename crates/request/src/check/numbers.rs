//! Numbers of one datatype as another: each keeps its value, or the tensor is refused.
//!
//! Fractions are rounded to the digits that the other datatype has, as every library does; what is too large for it,
//! and a fraction where whole numbers are wanted, would be another value.

use alipes_protocol::Datatype;
use alipes_protocol::datatype::fits_fp32;
use bytes::Bytes;

/// A number that cannot be the datatype that is wanted.
#[derive(Debug, PartialEq)]
pub struct Misfit {
    /// Its position in the tensor, row by row.
    pub position: usize,
    /// What it is.
    pub value: String,
}

#[derive(Clone, Copy)]
enum Number {
    Whole(i128),
    Real(f64),
}

/// Whether numbers of one datatype may become another: all may be read, and integers and `FP32`, `FP64` written.
pub fn may_convert(from: Datatype, to: Datatype) -> bool {
    from != Datatype::Bytes && (to.integers().is_some() || matches!(to, Datatype::Fp32 | Datatype::Fp64))
}

/// Bytes that so many bytes of one datatype take in another.
pub fn converted_bytes(bytes: usize, from: Datatype, to: Datatype) -> usize {
    match (from.size(), to.size()) {
        (Some(size), Some(wanted)) => (bytes / size).saturating_mul(wanted),
        _ => bytes,
    }
}

/// Row-major little-endian elements in another datatype.
///
/// # Errors
///
/// The first number that the other datatype cannot hold.
pub fn convert(data: &[u8], from: Datatype, to: Datatype) -> Result<Bytes, Misfit> {
    let (Some(size), Some(_)) = (from.size(), to.size()) else { return Ok(Bytes::copy_from_slice(data)) };
    let mut made = Vec::with_capacity(converted_bytes(data.len(), from, to));
    for (position, element) in data.chunks_exact(size).enumerate() {
        let number = read(from, element);
        if !write(to, number, &mut made) {
            let value = match number {
                Number::Whole(value) => value.to_string(),
                Number::Real(value) => value.to_string(),
            };
            return Err(Misfit { position, value });
        }
    }
    Ok(made.into())
}

fn read(datatype: Datatype, element: &[u8]) -> Number {
    let bits = element.iter().rev().fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
    match datatype {
        Datatype::Int8 => Number::Whole(i128::from(bits as u8 as i8)),
        Datatype::Int16 => Number::Whole(i128::from(bits as u16 as i16)),
        Datatype::Int32 => Number::Whole(i128::from(bits as u32 as i32)),
        Datatype::Int64 => Number::Whole(i128::from(bits as i64)),
        Datatype::Fp16 => Number::Real(half(bits as u16)),
        Datatype::Bf16 => Number::Real(f64::from(f32::from_bits((bits as u32) << 16))),
        Datatype::Fp32 => Number::Real(f64::from(f32::from_bits(bits as u32))),
        Datatype::Fp64 => Number::Real(f64::from_bits(bits)),
        Datatype::Bool => Number::Whole(i128::from(bits != 0)),
        Datatype::Uint8 | Datatype::Uint16 | Datatype::Uint32 | Datatype::Uint64 | Datatype::Bytes => {
            Number::Whole(i128::from(bits))
        }
    }
}

/// Appends a number; false where the datatype cannot hold it.
fn write(datatype: Datatype, number: Number, made: &mut Vec<u8>) -> bool {
    let real = match number {
        Number::Whole(value) => value as f64,
        Number::Real(value) => value,
    };
    match datatype {
        Datatype::Fp64 => made.extend_from_slice(&real.to_le_bytes()),
        Datatype::Fp32 if fits_fp32(real) => made.extend_from_slice(&(real as f32).to_le_bytes()),
        _ => {
            let (Some(range), Some(size), Some(whole)) = (datatype.integers(), datatype.size(), whole(number)) else {
                return false;
            };
            if !range.contains(&whole) {
                return false;
            }
            made.extend_from_slice(&whole.to_le_bytes()[..size]);
        }
    }
    true
}

fn whole(number: Number) -> Option<i128> {
    match number {
        Number::Whole(value) => Some(value),
        // A number without a fraction that is too large for `i128` becomes its last one, which no datatype holds.
        Number::Real(value) => (value.fract() == 0.0).then_some(value as i128),
    }
}

/// The value of an `FP16`. Source: IEEE 754, binary16.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    };
    if bits >> 15 == 1 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<const N: usize>(values: &[[u8; N]]) -> Vec<u8> {
        values.concat()
    }

    #[test]
    fn every_datatype_of_numbers_becomes_fp64() {
        let rows: [(Datatype, Vec<u8>, f64); 13] = [
            (Datatype::Bool, vec![1], 1.0),
            (Datatype::Uint8, vec![255], 255.0),
            (Datatype::Uint16, 65_535u16.to_le_bytes().to_vec(), 65_535.0),
            (Datatype::Uint32, u32::MAX.to_le_bytes().to_vec(), 4_294_967_295.0),
            (Datatype::Uint64, (1u64 << 63).to_le_bytes().to_vec(), 9_223_372_036_854_775_808.0),
            (Datatype::Int8, vec![0xff], -1.0),
            (Datatype::Int16, (-2i16).to_le_bytes().to_vec(), -2.0),
            (Datatype::Int32, (-3i32).to_le_bytes().to_vec(), -3.0),
            (Datatype::Int64, i64::MIN.to_le_bytes().to_vec(), -9_223_372_036_854_775_808.0),
            (Datatype::Fp16, 0xc500u16.to_le_bytes().to_vec(), -5.0),
            (Datatype::Bf16, 0x4049u16.to_le_bytes().to_vec(), 3.140625),
            (Datatype::Fp32, 0.5f32.to_le_bytes().to_vec(), 0.5),
            (Datatype::Fp64, 0.1f64.to_le_bytes().to_vec(), 0.1),
        ];
        for (from, data, expected) in rows {
            assert!(may_convert(from, Datatype::Fp64), "{from}");
            assert_eq!(convert(&data, from, Datatype::Fp64).unwrap(), expected.to_le_bytes().to_vec(), "{from}");
        }
        assert!(!may_convert(Datatype::Bytes, Datatype::Fp64));
        assert!(!may_convert(Datatype::Int64, Datatype::Bytes) && !may_convert(Datatype::Int64, Datatype::Bool));
    }

    #[test]
    fn halves_are_read_with_their_smallest_and_their_infinite_values() {
        let read = [0x0001, 0x0400, 0x3555, 0x7bff, 0x7c00, 0xfc00].map(half);
        let expected = [2f64.powi(-24), 2f64.powi(-14), 0.333251953125, 65_504.0, f64::INFINITY, f64::NEG_INFINITY];
        assert_eq!(read, expected);
        assert!(half(0x7e00).is_nan());
    }

    #[test]
    fn fractions_are_rounded_and_what_is_no_number_stays() {
        let doubles = bytes(&[0.1f64, f64::NAN, f64::NEG_INFINITY].map(f64::to_le_bytes));
        let made = convert(&doubles, Datatype::Fp64, Datatype::Fp32).unwrap();
        assert_eq!(&made[..4], 0.1f32.to_le_bytes());
        assert!(f32::from_le_bytes(made[4..8].try_into().unwrap()).is_nan());
        assert_eq!(&made[8..], f32::NEG_INFINITY.to_le_bytes());
    }

    #[test]
    fn whole_numbers_are_integers_of_any_size_that_holds_them() {
        let made = convert(&bytes(&[-3f32, 7.0].map(f32::to_le_bytes)), Datatype::Fp32, Datatype::Int64).unwrap();
        assert_eq!(made, bytes(&[-3i64, 7].map(i64::to_le_bytes)));
        let made = convert(&bytes(&[-3i64, 127].map(i64::to_le_bytes)), Datatype::Int64, Datatype::Int8).unwrap();
        assert_eq!(made[..], [0xfd, 127]);
    }

    #[test]
    fn what_would_be_another_value_is_named_with_its_position() {
        let refused = |values: &[u8], from, to| convert(values, from, to).unwrap_err();
        let misfit = |position, value: &str| Misfit { position, value: value.to_owned() };
        let reals = bytes(&[1f64, 1e39].map(f64::to_le_bytes));
        assert_eq!(refused(&reals[8..], Datatype::Fp64, Datatype::Fp32).position, 0);
        assert_eq!(
            refused(&reals, Datatype::Fp64, Datatype::Int64),
            misfit(1, "1000000000000000000000000000000000000000")
        );
        let half = bytes(&[2f32, 1.5].map(f32::to_le_bytes));
        assert_eq!(refused(&half, Datatype::Fp32, Datatype::Int32), misfit(1, "1.5"));
        let not_a_number = f32::NAN.to_le_bytes();
        assert_eq!(refused(&not_a_number, Datatype::Fp32, Datatype::Int32), misfit(0, "NaN"));
        let negative = (-1i64).to_le_bytes();
        assert_eq!(refused(&negative, Datatype::Int64, Datatype::Uint8), misfit(0, "-1"));
    }
}
