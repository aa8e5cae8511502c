//! Typed contents: the values of a tensor as lists of numbers instead of bytes.

use std::ops::RangeInclusive;

use bytes::Bytes;

use super::inference::InferTensorContents;
use crate::{Datatype, InferError, TritonRelease};

/// The bytes of an input whose values came as typed contents.
///
/// The protocol has no list for 8- and 16-bit integers: they travel in the 32-bit lists. Triton's recorded release
/// keeps the low bytes of one that does not fit.
///
/// # Errors
/// A list that does not fit the datatype, or a second list beside the first; in later releases than the recorded one an
/// integer beyond the datatype's range. `datatype` is `None` for a name that is no datatype: then every list is the
/// wrong one.
pub(super) fn bytes_of(
    contents: &InferTensorContents,
    datatype: Option<Datatype>,
    input: &str,
    model: &str,
    release: TritonRelease,
) -> Result<Bytes, InferError> {
    let mut data: Option<Bytes> = None;
    for list in Values::lists(contents) {
        if list.is_empty() {
            continue;
        }
        if data.is_some() {
            return Err(supplied_twice(input, model));
        }
        match datatype {
            Some(datatype) if list.holds(datatype) => {
                if release.is_later() {
                    list.check(datatype, input, model)?;
                }
                data = Some(list.pack(datatype));
            }
            _ => return Err(wrong_list(list.datatype(), datatype, input, model)),
        }
    }
    Ok(data.unwrap_or_default())
}

/// One of the lists of typed contents.
enum Values<'a> {
    Bool(&'a [bool]),
    Int(&'a [i32]),
    Int64(&'a [i64]),
    Uint(&'a [u32]),
    Uint64(&'a [u64]),
    Fp32(&'a [f32]),
    Fp64(&'a [f64]),
    Bytes(&'a [Bytes]),
}

impl<'a> Values<'a> {
    fn lists(contents: &'a InferTensorContents) -> [Values<'a>; 8] {
        [
            Values::Bool(&contents.bool_contents),
            Values::Int(&contents.int_contents),
            Values::Int64(&contents.int64_contents),
            Values::Uint(&contents.uint_contents),
            Values::Uint64(&contents.uint64_contents),
            Values::Fp32(&contents.fp32_contents),
            Values::Fp64(&contents.fp64_contents),
            Values::Bytes(&contents.bytes_contents),
        ]
    }

    fn is_empty(&self) -> bool {
        match self {
            Values::Bool(values) => values.is_empty(),
            Values::Int(values) => values.is_empty(),
            Values::Int64(values) => values.is_empty(),
            Values::Uint(values) => values.is_empty(),
            Values::Uint64(values) => values.is_empty(),
            Values::Fp32(values) => values.is_empty(),
            Values::Fp64(values) => values.is_empty(),
            Values::Bytes(values) => values.is_empty(),
        }
    }

    /// The datatype that the list is named after.
    fn datatype(&self) -> Datatype {
        match self {
            Values::Bool(_) => Datatype::Bool,
            Values::Int(_) => Datatype::Int32,
            Values::Int64(_) => Datatype::Int64,
            Values::Uint(_) => Datatype::Uint32,
            Values::Uint64(_) => Datatype::Uint64,
            Values::Fp32(_) => Datatype::Fp32,
            Values::Fp64(_) => Datatype::Fp64,
            Values::Bytes(_) => Datatype::Bytes,
        }
    }

    fn holds(&self, datatype: Datatype) -> bool {
        match self {
            Values::Int(_) => matches!(datatype, Datatype::Int8 | Datatype::Int16 | Datatype::Int32),
            Values::Uint(_) => matches!(datatype, Datatype::Uint8 | Datatype::Uint16 | Datatype::Uint32),
            _ => self.datatype() == datatype,
        }
    }

    /// Checks that integers of 32 bits fit a narrower datatype.
    fn check(&self, datatype: Datatype, input: &str, model: &str) -> Result<(), InferError> {
        let Some(range) = datatype.integers() else { return Ok(()) };
        let first_beyond = match self {
            Values::Int(values) => first_beyond(values, &range),
            Values::Uint(values) => first_beyond(values, &range),
            _ => None,
        };
        let Some((index, value)) = first_beyond else { return Ok(()) };
        Err(InferError::invalid(format!(
            "value {index} of the explicit tensor data for input tensor '{input}' for model '{model}', counted from 0, \
             is {value}, expected a whole number from {} to {} for {datatype}",
            range.start(),
            range.end()
        )))
    }

    /// The values as bytes of `datatype`, which the list holds.
    fn pack(&self, datatype: Datatype) -> Bytes {
        let packed = match (self, datatype.size()) {
            (Values::Bool(values), _) => values.iter().map(|&value| u8::from(value)).collect(),
            (Values::Int(values), Some(1)) => values.iter().map(|&value| value as u8).collect(),
            (Values::Int(values), Some(2)) => pack_each(values, |value| (value as i16).to_le_bytes()),
            (Values::Int(values), _) => pack_each(values, i32::to_le_bytes),
            (Values::Int64(values), _) => pack_each(values, i64::to_le_bytes),
            (Values::Uint(values), Some(1)) => values.iter().map(|&value| value as u8).collect(),
            (Values::Uint(values), Some(2)) => pack_each(values, |value| (value as u16).to_le_bytes()),
            (Values::Uint(values), _) => pack_each(values, u32::to_le_bytes),
            (Values::Uint64(values), _) => pack_each(values, u64::to_le_bytes),
            (Values::Fp32(values), _) => pack_each(values, f32::to_le_bytes),
            (Values::Fp64(values), _) => pack_each(values, f64::to_le_bytes),
            (Values::Bytes(values), _) => pack_strings(values),
        };
        Bytes::from(packed)
    }
}

/// The first value out of a range, and its place.
fn first_beyond<T: Copy + Into<i128>>(values: &[T], range: &RangeInclusive<i128>) -> Option<(usize, i128)> {
    values.iter().map(|&value| value.into()).enumerate().find(|(_, value)| !range.contains(value))
}

/// Writes into a buffer of the final length, which the compiler turns into wide copies.
fn pack_each<T: Copy, const N: usize>(values: &[T], bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    let mut packed = vec![0; values.len() * N];
    for (slot, &value) in packed.chunks_exact_mut(N).zip(values) {
        slot.copy_from_slice(&bytes(value));
    }
    packed
}

/// Each element behind its 32-bit length, which a message of at most 2 GiB cannot exceed.
fn pack_strings(values: &[Bytes]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(values.iter().map(|value| value.len() + 4).sum());
    for value in values {
        packed.extend_from_slice(&(value.len() as u32).to_le_bytes());
        packed.extend_from_slice(value);
    }
    packed
}

fn supplied_twice(input: &str, model: &str) -> InferError {
    InferError::invalid(format!(
        "unexpected explicit tensor data for input tensor '{input}' for model '{model}', binary data was already supplied."
    ))
}

fn wrong_list(seen: Datatype, expected: Option<Datatype>, input: &str, model: &str) -> InferError {
    let expected = expected.map_or("<invalid>", Datatype::name);
    InferError::invalid(format!(
        "unexpected explicit tensor data for input tensor '{input}' for model '{model}' of type '{seen}', expected datatype '{expected}'"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(contents: InferTensorContents, datatype: Datatype) -> Result<Vec<u8>, String> {
        pack_as(TritonRelease::V2_73, contents, datatype)
    }

    fn pack_as(release: TritonRelease, contents: InferTensorContents, datatype: Datatype) -> Result<Vec<u8>, String> {
        let packed = bytes_of(&contents, Some(datatype), "X", "m", release);
        packed.map(|data| data.to_vec()).map_err(|error| error.message)
    }

    #[test]
    fn narrow_integers_that_do_not_fit_are_refused_with_their_place() {
        let ints = InferTensorContents { int_contents: vec![127, 128, -129], ..Default::default() };
        let text = "value 1 of the explicit tensor data for input tensor 'X' for model 'm', counted from 0, is 128, \
                    expected a whole number from -128 to 127 for INT8";
        assert_eq!(pack(ints.clone(), Datatype::Int8), Err(text.to_owned()));
        assert_eq!(pack(ints, Datatype::Int16), Ok(vec![0x7f, 0x00, 0x80, 0x00, 0x7f, 0xff]));
        let uints = InferTensorContents { uint_contents: vec![65535, 256], ..Default::default() };
        assert_eq!(pack(uints.clone(), Datatype::Uint16), Ok(vec![0xff, 0xff, 0x00, 0x01]));
        assert!(
            pack(uints, Datatype::Uint8)
                .unwrap_err()
                .ends_with("is 65535, expected a whole number from 0 to 255 for UINT8")
        );
        let uints = InferTensorContents { uint_contents: vec![u32::MAX], ..Default::default() };
        assert_eq!(pack(uints, Datatype::Uint32), Ok(vec![0xff; 4]));
    }

    #[test]
    fn narrow_integers_keep_their_low_bytes_in_the_recorded_release() {
        let ints = InferTensorContents { int_contents: vec![128, -129], ..Default::default() };
        assert_eq!(pack_as(TritonRelease::V2_51, ints, Datatype::Int8), Ok(vec![0x80, 0x7f]));
    }

    #[test]
    fn strings_stand_behind_their_lengths() {
        let strings = vec![Bytes::from_static(b"one"), Bytes::new()];
        let contents = InferTensorContents { bytes_contents: strings, ..Default::default() };
        assert_eq!(pack(contents, Datatype::Bytes), Ok(b"\x03\0\0\0one\0\0\0\0".to_vec()));
    }

    #[test]
    fn no_list_takes_half_precision() {
        let floats = InferTensorContents { fp32_contents: vec![1.5], ..Default::default() };
        let text = "unexpected explicit tensor data for input tensor 'X' for model 'm' of type 'FP32', expected datatype 'BF16'";
        assert_eq!(pack(floats, Datatype::Bf16), Err(text.to_owned()));
    }

    #[test]
    fn a_second_list_is_refused() {
        let both = InferTensorContents { int_contents: vec![1], int64_contents: vec![1], ..Default::default() };
        let text =
            "unexpected explicit tensor data for input tensor 'X' for model 'm', binary data was already supplied.";
        assert_eq!(pack(both, Datatype::Int32), Err(text.to_owned()));
    }

    #[test]
    fn empty_lists_are_no_bytes() {
        assert_eq!(pack(InferTensorContents::default(), Datatype::Fp32), Ok(Vec::new()));
    }
}
