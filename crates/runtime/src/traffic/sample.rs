//! One number of an output, to compare the answers of two versions.
//!
//! It is the sum of the elements of a row, each with a weight of its own: means alone would not tell two distributions
//! over classes apart, whose elements always add up to one. The weights never change, so numbers of different versions,
//! servers and days can be compared.

use alipes_protocol::Tensor;
use xxhash_rust::xxh3::xxh3_64;

use super::elements::{ReadElement, elements_of};

/// Elements of a row that count: of a larger row, so many at equal distances.
const MAX_ELEMENTS: usize = 1_024;

/// What stands for a sum that is no number, or has no end: JSON has neither.
const NOT_FINITE: f64 = 1e308;

/// The number of an output; none where it is empty, its bytes are elsewhere, or its rows cannot be told.
pub(super) fn sample_of(output: &Tensor, is_batched: bool) -> Option<f64> {
    let rows = if is_batched { usize::try_from(*output.shape.first()?).ok()? } else { 1 };
    let row = output.data.get(..output.data.len().checked_div(rows)?).filter(|row| !row.is_empty())?;
    let sum = match elements_of(output.datatype) {
        Some((size, read)) => weighted(row, size, read),
        None => unit(xxh3_64(row)),
    };
    Some(if sum.is_finite() { sum } else { NOT_FINITE })
}

fn weighted(row: &[u8], size: usize, read: ReadElement) -> f64 {
    let step = (row.len() / size).div_ceil(MAX_ELEMENTS).max(1);
    let elements = (0_u64..).zip(row.chunks_exact(size)).step_by(step);
    elements.map(|(place, element)| weight(place) * read(element)).sum()
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
    use alipes_protocol::Datatype;
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
