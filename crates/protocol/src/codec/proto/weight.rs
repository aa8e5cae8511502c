//! What a request may take while it is parsed.

use super::records::records;
use crate::limits::{GRPC_MAX_FIELDS, REQUEST_MAX_ENTRIES};
use crate::{Code, InferError};

/// Field numbers of `ModelInferRequest`, of its inputs, outputs and parameters, and of `InferTensorContents`.
const PARAMETERS: u64 = 4;
const INPUTS: u64 = 5;
const OUTPUTS: u64 = 6;
const RAW_CONTENTS: u64 = 7;
const INPUT_PARAMETERS: u64 = 4;
const CONTENTS: u64 = 5;
const OUTPUT_PARAMETERS: u64 = 2;
const BOOL_CONTENTS: u64 = 1;
const FP32_CONTENTS: u64 = 6;
const FP64_CONTENTS: u64 = 7;
const BYTES_CONTENTS: u64 = 8;

/// Fields of a message that `read_bytes` looks at: more than a model has inputs.
const LOOKED_AT: usize = 256;

/// Bytes that an entry of a list takes at most, whatever it holds: the largest is an input. While a list grows, three
/// times as many entries as it has may be set aside.
const ENTRY_BYTES: u64 = 1024;

/// Bytes that an entry which is a slice of the message takes at most, with the room that a growing list sets aside.
const SLICE_BYTES: u64 = 96;

/// Bytes that a parameter takes beside its texts: the first makes a node with room for eleven.
const PARAMETER_BYTES: u64 = 768;

/// Bytes that one byte of a text becomes: it is copied, and perhaps once more into what the message becomes.
const TEXT_BYTES: u64 = 2;

/// Bytes that one byte of packed integers may become: a number of eight bytes, in a list that has as much room again,
/// and the same number in its tensor. Those of other numbers become as many, in these three places.
const INTEGER_BYTES: u64 = 24;
const OTHER_BYTES: u64 = 3;

/// Bytes that a serialized `ModelInferRequest` takes beside itself while it is parsed, at most: two bytes of it may be
/// an input, and one may be a number of eight bytes.
///
/// # Errors
///
/// `TooLarge` for more than `GRPC_MAX_FIELDS` fields outside of the contents of tensors, whose number its shape bounds,
/// and what parsers say of a message that cannot be read to its end: nobody knows what stands behind.
pub fn parsed_bytes(message: &[u8]) -> Result<u64, InferError> {
    let mut left = GRPC_MAX_FIELDS;
    let mut bytes = 0;
    for record in records(message, Some(PARAMETERS)) {
        let (field, record) = record.ok_or_else(broken)?;
        count(&mut left)?;
        bytes += ENTRY_BYTES
            + match field {
                INPUTS => of_input(record, &mut left)?,
                OUTPUTS => of_output(record, &mut left)?,
                RAW_CONTENTS => 0,
                _ => TEXT_BYTES * record.len() as u64,
            };
    }
    Ok(bytes)
}

/// # Errors
///
/// `TooLarge` for a message that is no inference and has more than `REQUEST_MAX_ENTRIES` fields.
pub fn check_fields(message: &[u8]) -> Result<(), InferError> {
    if records(message, None).nth(REQUEST_MAX_ENTRIES).is_none() {
        return Ok(());
    }
    let text = format!("request message has more than {REQUEST_MAX_ENTRIES} fields");
    Err(InferError::new(Code::TooLarge, text))
}

fn of_input(input: &[u8], left: &mut usize) -> Result<u64, InferError> {
    let mut bytes = 0;
    for record in records(input, Some(INPUT_PARAMETERS)) {
        let (field, record) = record.ok_or_else(broken)?;
        count(left)?;
        bytes += match field {
            CONTENTS => of_contents(record)?,
            INPUT_PARAMETERS => PARAMETER_BYTES + TEXT_BYTES * record.len() as u64,
            // Names and the shape.
            _ => SLICE_BYTES + INTEGER_BYTES * record.len() as u64,
        };
    }
    Ok(bytes)
}

fn of_output(output: &[u8], left: &mut usize) -> Result<u64, InferError> {
    let mut bytes = 0;
    for record in records(output, Some(OUTPUT_PARAMETERS)) {
        let (field, record) = record.ok_or_else(broken)?;
        count(left)?;
        let parameter = if field == OUTPUT_PARAMETERS { PARAMETER_BYTES } else { 0 };
        bytes += parameter + TEXT_BYTES * record.len() as u64;
    }
    Ok(bytes)
}

fn count(left: &mut usize) -> Result<(), InferError> {
    *left = left.checked_sub(1).ok_or_else(|| {
        let text = format!("request message has more than {GRPC_MAX_FIELDS} fields beside the contents of its tensors");
        InferError::new(Code::TooLarge, text)
    })?;
    Ok(())
}

/// Bytes of a serialized `ModelInferRequest` that are read one by one: all but raw tensors, which stay slices of it.
///
/// Only so many fields are looked at that the answer costs next to nothing; what stands behind them counts as a whole.
pub fn read_bytes(message: &[u8]) -> usize {
    let seen = records(message, Some(PARAMETERS)).take(LOOKED_AT).flatten();
    message.len() - seen.filter(|(field, _)| *field == RAW_CONTENTS).map(|(_, raw)| raw.len()).sum::<usize>()
}

fn of_contents(contents: &[u8]) -> Result<u64, InferError> {
    let mut bytes = 0;
    for record in records(contents, None) {
        let (field, record) = record.ok_or_else(broken)?;
        bytes += match field {
            BYTES_CONTENTS => SLICE_BYTES + record.len() as u64,
            BOOL_CONTENTS | FP32_CONTENTS | FP64_CONTENTS => INTEGER_BYTES + OTHER_BYTES * record.len() as u64,
            _ => INTEGER_BYTES * (1 + record.len() as u64),
        };
    }
    Ok(bytes)
}

fn broken() -> InferError {
    InferError::internal("failed to parse the request message: a field cannot be read")
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::codec::proto::inference::model_infer_request::InferInputTensor;
    use crate::codec::proto::inference::{InferTensorContents, ModelInferRequest};

    fn of(contents: InferTensorContents) -> u64 {
        let input = InferInputTensor { name: "X".to_owned(), contents: Some(contents), ..Default::default() };
        parsed_bytes(&ModelInferRequest { inputs: vec![input], ..Default::default() }.encode_to_vec()).unwrap()
    }

    #[test]
    fn what_stays_a_slice_weighs_next_to_nothing() {
        let raw_input_contents = vec![vec![7; 1 << 20].into()];
        let message = ModelInferRequest { model_name: "m".to_owned(), raw_input_contents, ..Default::default() };
        assert!(parsed_bytes(&message.encode_to_vec()).unwrap() < 1 << 12);
    }

    #[test]
    fn what_grows_when_it_is_parsed_weighs_what_it_becomes() {
        let count = 10_000;
        assert!(of(InferTensorContents { int64_contents: vec![1; count], ..Default::default() }) >= 16 * count as u64);
        let numbers = of(InferTensorContents { fp32_contents: vec![1.0; count], ..Default::default() });
        assert!((12..20).contains(&(numbers / count as u64)), "{numbers}");
        let empty = vec![Default::default(); count];
        assert!(of(InferTensorContents { bytes_contents: empty, ..Default::default() }) >= 32 * count as u64);
        let inputs = vec![InferInputTensor::default(); count];
        let message = ModelInferRequest { inputs, ..Default::default() }.encode_to_vec();
        assert_eq!(message.len(), 2 * count);
        assert!(parsed_bytes(&message).unwrap() >= (count * size_of::<InferInputTensor>()) as u64);
        assert!(2 * size_of::<InferInputTensor>() as u64 <= ENTRY_BYTES);
    }

    #[test]
    fn a_message_of_settings_has_so_many_at_most() {
        let settings = |count: usize| [0x0a, 1, 7].repeat(count);
        assert_eq!(check_fields(&settings(REQUEST_MAX_ENTRIES)), Ok(()));
        let refused = check_fields(&settings(REQUEST_MAX_ENTRIES + 1)).unwrap_err();
        assert_eq!(refused.message, "request message has more than 16384 fields");
    }

    #[test]
    fn a_message_that_cannot_be_read_is_refused_unweighed() {
        assert_eq!(parsed_bytes(&[]), Ok(0));
        for broken in [&[0x2a, 0xff][..], &[0x2a, 0, 0x2a, 9, 1], &[0xff; 32], &[0x2a, 2, 0x2a, 1]] {
            assert_eq!(parsed_bytes(broken).unwrap_err().code, Code::Internal, "{broken:?}");
            assert!(ModelInferRequest::decode(broken).is_err());
        }
    }

    #[test]
    fn what_stands_behind_a_group_or_a_wrong_map_counts_or_is_refused() {
        let inputs = [0x2a, 0].repeat(3);
        let behind = |front: &[u8]| parsed_bytes(&[front, &inputs].concat()).ok();
        assert_eq!(behind(&[0x7b, 0x7c]), Some(4 * ENTRY_BYTES));
        assert_eq!(behind(&[0x7b, 0x0b, 0x10, 5, 0x0c, 0x1a, 1, 9, 0x7c]), Some(4 * ENTRY_BYTES));
        // Parsers take a map's entry for what it is under any wire type.
        for map in [[0x20, 0], [0x21, 0], [0x23, 0], [0x25, 0]] {
            assert_eq!(behind(&map), None, "{map:?}");
            assert_eq!(parsed_bytes(&[&[0x2a, 2][..], &map].concat()).ok(), None, "{map:?}");
        }
        assert_eq!(parsed_bytes(&[0x32, 2, 0x10, 0]).ok(), None);
    }

    #[test]
    fn more_fields_than_any_request_has_are_refused() {
        let input = |shape: usize| {
            let input = InferInputTensor { name: "X".to_owned(), shape: vec![1; shape], ..Default::default() };
            ModelInferRequest { inputs: vec![input], ..Default::default() }.encode_to_vec()
        };
        assert!(parsed_bytes(&input(1000)).is_ok());
        for message in [[0x2a, 0].repeat(GRPC_MAX_FIELDS + 1), [0x78, 0].repeat(GRPC_MAX_FIELDS + 1)] {
            let refused = parsed_bytes(&message).unwrap_err();
            assert_eq!(refused.code, Code::TooLarge, "{refused:?}");
        }
        assert!(parsed_bytes(&[0x2a, 0].repeat(GRPC_MAX_FIELDS)).is_ok());
    }

    #[test]
    fn raw_tensors_are_not_read_and_everything_else_is() {
        let raw_input_contents = vec![vec![7; 1 << 20].into(), vec![8; 1 << 20].into()];
        let message = ModelInferRequest { model_name: "m".to_owned(), raw_input_contents, ..Default::default() };
        assert!(read_bytes(&message.encode_to_vec()) < 32);
        let contents = InferTensorContents { fp32_contents: vec![1.0; 1000], ..Default::default() };
        let input = InferInputTensor { contents: Some(contents), ..Default::default() };
        let message = ModelInferRequest { inputs: vec![input], ..Default::default() }.encode_to_vec();
        assert_eq!(read_bytes(&message), message.len());
        let empty = [0x3a, 0].repeat(1 << 20);
        assert_eq!(read_bytes(&empty), empty.len());
    }
}
