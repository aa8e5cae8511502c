//! Finding a tensor in a message that has only begun to arrive.

use prost::encoding::decode_varint;

use super::records::is_misread;

/// Field numbers of `model_name` and `model_version` in `ModelInferRequest`.
const MODEL_NAME: u8 = 1;
const MODEL_VERSION: u8 = 2;

/// Field number of `parameters` in both.
const PARAMETERS: u64 = 4;

/// Field number of `raw_input_contents` in `ModelInferRequest`.
const RAW_INPUT_CONTENTS: u64 = 7;

/// Field number of `raw_output_contents` in `ModelInferResponse`.
const RAW_OUTPUT_CONTENTS: u64 = 6;

/// Where the first raw tensor's bytes begin within a serialized `ModelInferRequest`, or `None` where `head`, the
/// beginning of the message, does not tell.
///
/// A reader that knows it can receive the tensor at an aligned address.
pub fn first_raw_tensor(head: &[u8]) -> Option<usize> {
    first_bytes_of(RAW_INPUT_CONTENTS, head)
}

/// Where the first raw tensor begins in a serialized `ModelInferResponse`; `None` where its beginning does not tell.
pub fn first_raw_output(head: &[u8]) -> Option<usize> {
    first_bytes_of(RAW_OUTPUT_CONTENTS, head)
}

/// Where the content of the first field with this number begins.
fn first_bytes_of(field: u64, head: &[u8]) -> Option<usize> {
    let mut rest = head;
    loop {
        let tag = decode_varint(&mut rest).ok()?;
        match (tag >> 3, tag & 7) {
            (number, kind) if is_misread(number, kind, Some(PARAMETERS)) => return None,
            (number, 2) if number == field => {
                decode_varint(&mut rest).ok()?;
                return Some(head.len() - rest.len());
            }
            (_, 0) => drop(decode_varint(&mut rest).ok()?),
            (_, 1) => rest = rest.get(8..)?,
            (_, 2) => {
                let length = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
                rest = rest.get(length..)?;
            }
            (_, 5) => rest = rest.get(4..)?,
            _ => return None,
        }
    }
}

/// Name and version of the model that a serialized `ModelInferRequest` asks for, where `head`, the beginning of the
/// message, has both: clients write them in front of everything else.
pub fn named_model(head: &[u8]) -> Option<(&str, &str)> {
    let mut rest = head;
    let name = text(MODEL_NAME, &mut rest)?;
    match rest.first()? >> 3 {
        MODEL_VERSION => Some((name, text(MODEL_VERSION, &mut rest)?)),
        // The next field has begun, so no version follows.
        _ => Some((name, "")),
    }
}

/// The text field with this number, if it comes next and is complete.
fn text<'a>(field: u8, rest: &mut &'a [u8]) -> Option<&'a str> {
    let mut behind = rest.strip_prefix(&[field << 3 | 2])?;
    let length = usize::try_from(decode_varint(&mut behind).ok()?).ok()?;
    let (bytes, behind) = behind.split_at_checked(length)?;
    *rest = behind;
    std::str::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::proto::inference::ModelInferRequest;
    use crate::codec::proto::inference::model_infer_request::InferInputTensor;
    use prost::Message;

    #[test]
    fn the_tensor_is_found_behind_everything_else() {
        let input = InferInputTensor { name: "X".to_owned(), shape: vec![1, 300], ..Default::default() };
        let message = ModelInferRequest {
            model_name: "m".to_owned(),
            inputs: vec![input],
            raw_input_contents: vec![vec![7; 300].into()],
            ..Default::default()
        };
        let wire = message.encode_to_vec();
        let start = first_raw_tensor(&wire).unwrap();
        assert_eq!(wire[start..], [7; 300]);
        assert_eq!(first_raw_tensor(&wire[..start]), Some(start));
        assert_eq!(first_raw_tensor(&wire[..start - 1]), None);
    }

    #[test]
    fn the_model_is_named_in_front() {
        let named = |name: &str, version: &str, id: &str| {
            let (model_name, model_version, id) = (name.to_owned(), version.to_owned(), id.to_owned());
            ModelInferRequest { model_name, model_version, id, ..Default::default() }.encode_to_vec()
        };
        assert_eq!(named_model(&named("net", "3", "7")), Some(("net", "3")));
        assert_eq!(named_model(&named("net", "", "7")), Some(("net", "")));
        assert_eq!(named_model(&named("net", "3", "7")[..4]), None);
        // A version may still follow, or is cut off.
        assert_eq!(named_model(&named("net", "3", "7")[..5]), None);
        assert_eq!(named_model(&named("net", "3", "7")[..7]), None);
        assert_eq!(named_model(&named("", "3", "7")), None);
        assert_eq!(named_model(&[0x0a, 1, 0xff, 0x1a, 0]), None);
    }

    #[test]
    fn broken_bytes_have_no_tensor() {
        assert_eq!(first_raw_tensor(&[]), None);
        assert_eq!(first_raw_tensor(&[0xff; 16]), None);
        assert_eq!(first_raw_tensor(&[0x3a]), None);
        assert_eq!(first_raw_tensor(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]), None);
    }
}
