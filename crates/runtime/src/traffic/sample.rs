//! One number of an output, to compare the answers of two versions.
//!
//! It is the sum of the elements of a row, each with a weight of its own: means alone would not tell two distributions
//! over classes apart, whose elements always add up to one. The weights never change, so numbers of different versions,
//! servers and days can be compared.

use alipes_protocol::{Datatype, Tensor};
use xxhash_rust::xxh3::xxh3_64;

/// Elements of a row that count: of a larger row, so many at equal distances.
const MAX_ELEMENTS: usize = 1_024;

/// What stands for a sum that is no number, or has no end: JSON has neither.
const NOT_FINITE: f64 = 1e308;

/// The number of an output; none where it is empty, its bytes are elsewhere, or its rows cannot be told.
pub(super) fn sample_of(output: &Tensor, is_batched: bool) -> Option<f64> {
    let rows = if is_batched { usize::try_from(*output.shape.first()?).ok()? } else { 1 };
    let row = output.data.get(..output.data.len().checked_div(rows)?).filter(|row| !row.is_empty())?;
    let sum = match output.datatype {
        Datatype::Bool | Datatype::Uint8 => weighted(row, |[byte]| f64::from(byte)),
        Datatype::Int8 => weighted(row, |bytes| f64::from(i8::from_ne_bytes(bytes))),
        Datatype::Uint16 => weighted(row, |bytes| f64::from(u16::from_ne_bytes(bytes))),
        Datatype::Int16 => weighted(row, |bytes| f64::from(i16::from_ne_bytes(bytes))),
        Datatype::Uint32 => weighted(row, |bytes| f64::from(u32::from_ne_bytes(bytes))),
        Datatype::Int32 => weighted(row, |bytes| f64::from(i32::from_ne_bytes(bytes))),
        Datatype::Uint64 => weighted(row, |bytes| u64::from_ne_bytes(bytes) as f64),
        Datatype::Int64 => weighted(row, |bytes| i64::from_ne_bytes(bytes) as f64),
        Datatype::Fp32 => weighted(row, |bytes| f64::from(f32::from_ne_bytes(bytes))),
        Datatype::Fp64 => weighted(row, f64::from_ne_bytes),
        // Equal numbers have equal bits, which is all that is needed of halves and texts: equal answers stay equal.
        Datatype::Fp16 | Datatype::Bf16 => weighted(row, |bytes| f64::from(ordered_half(u16::from_ne_bytes(bytes)))),
        Datatype::Bytes => unit(xxh3_64(row)),
    };
    Some(if sum.is_finite() { sum } else { NOT_FINITE })
}

fn weighted<const N: usize>(row: &[u8], read: impl Fn([u8; N]) -> f64) -> f64 {
    let elements = row.len() / N;
    let step = elements.div_ceil(MAX_ELEMENTS).max(1);
    let element = |place: usize| row.get(place * N..place * N + N).and_then(|bytes| bytes.try_into().ok()).map(&read);
    (0..elements).step_by(step).filter_map(|place| Some(weight(place as u64) * element(place)?)).sum()
}

/// The bits of a half as a number that grows as the half does.
fn ordered_half(bits: u16) -> i32 {
    let size = i32::from(bits & 0x7fff);
    if bits & 0x8000 == 0 { size } else { -size }
}

/// The weight of the element at a place: between a half and one and a half, so that no element counts for nothing.
fn weight(place: u64) -> f64 {
    0.5 + unit(xxh3_64(&place.to_le_bytes()))
}

/// A number in [0, 1) from 64 bits.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn floats(shape: &[i64], values: &[f32]) -> Tensor {
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let shape = shape.iter().copied().collect();
        Tensor { name: "Y".into(), datatype: Datatype::Fp32, shape, data: Bytes::from(data) }
    }

    #[test]
    fn a_sample_is_of_the_first_row_and_sees_every_element() {
        let sample = |values: &[f32]| sample_of(&floats(&[2, 2], values), true).unwrap();
        assert_eq!(sample(&[0.9, 0.1, 0.0, 0.0]), sample(&[0.9, 0.1, 0.5, 0.5]));
        assert_ne!(sample(&[0.9, 0.1, 0.0, 0.0]), sample(&[0.1, 0.9, 0.0, 0.0]));
    }

    #[test]
    fn a_sample_is_a_finite_number_or_none() {
        assert_eq!(sample_of(&floats(&[1], &[f32::NAN]), false), Some(NOT_FINITE));
        assert_eq!(sample_of(&floats(&[1], &[f32::INFINITY]), true), Some(NOT_FINITE));
        assert_eq!(sample_of(&floats(&[0, 2], &[]), true), None);
        assert_eq!(sample_of(&floats(&[0], &[]), false), None);
    }

    #[test]
    fn every_datatype_has_a_sample_that_changes_with_its_elements() {
        for row in alipes_protocol::datatype::TABLE {
            let of = |byte: u8| {
                let data = Bytes::from(vec![byte; row.size.unwrap_or(9)]);
                sample_of(
                    &Tensor { name: "Y".into(), datatype: row.datatype, shape: [1].into_iter().collect(), data },
                    true,
                )
            };
            assert!(of(1).is_some_and(f64::is_finite), "{}", row.name);
            assert_ne!(of(0), of(1), "{}", row.name);
        }
    }
}
