//! The bytes of a tensor from its values.

use std::fmt::Write;

use alipes_protocol::codec::elements;
use alipes_protocol::codec::json::reading::{DecodeContext, read_list, read_values, show, values_fault};
use alipes_protocol::codec::json::value::{Leaves, Value};
use alipes_protocol::{Code, Datatype, InferError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::body::PredictInput;
use super::half;

/// The only member of an object that stands for a text of any bytes.
const BASE64: &str = "b64";

/// Whether a value is bytes in base64, as an object with one member.
pub fn is_base64(value: Value<'_>) -> bool {
    let Ok(mut members) = value.members() else { return false };
    matches!(members.next_as_it_stands(), Some((name, _)) if name.is(BASE64.as_bytes()))
        && members.next_as_it_stands().is_none()
}

/// The bytes of `count` values, which lie in lists within lists or alone.
///
/// # Errors
///
/// `InvalidArgument` for a value of another type, or beyond the range of the input's datatype; what there is no memory
/// for.
pub fn read(
    value: Value<'_>,
    input: &PredictInput,
    count: usize,
    context: DecodeContext<'_>,
) -> Result<Vec<u8>, InferError> {
    match input.datatype {
        Datatype::Bytes => read_texts(value, input, context),
        Datatype::Fp16 | Datatype::Bf16 => read_halves(value, input, count, context),
        datatype => {
            let before = context.reserved.get();
            let text = value.as_it_stands();
            if value.is_array()
                && let Some((bytes, _)) = read_list(text, 0, datatype, count, context)
            {
                return Ok(bytes);
            }
            context.reserved.set(before);
            let read = read_values(Leaves::of_any(value), datatype, count, &input.name, context);
            read.map_err(|error| explained(error, value, input))
        }
    }
}

/// The refusal of a value, with what was expected; limits and memory have texts of their own.
fn explained(error: InferError, value: Value<'_>, input: &PredictInput) -> InferError {
    if !matches!(error.code, Code::Internal | Code::InvalidArgument) {
        return error;
    }
    let fault = values_fault(Leaves::of_any(value), input.datatype, None);
    let mut text = format!("input '{}' takes {}", input.name, input.datatype);
    let _ = write!(text, ": {}", fault.unwrap_or(error.message));
    InferError::invalid(text)
}

/// Elements of a `BYTES` tensor: texts as they are, and bytes in base64.
fn read_texts(value: Value<'_>, input: &PredictInput, context: DecodeContext<'_>) -> Result<Vec<u8>, InferError> {
    let leaves = Leaves::of_any(value);
    // Neither undoing escapes nor base64 makes an element longer.
    let most = leaves.clone().map(|leaf| elements::PREFIX_BYTES + leaf.as_it_stands().len()).sum();
    context.reserve(most)?;
    let mut bytes = Vec::with_capacity(most);
    for leaf in leaves {
        if leaf.is_string() {
            elements::push(&mut bytes, &leaf.as_bytes()?);
        } else {
            let decoded = of_base64(leaf).ok_or_else(|| no_text(leaf, input))?;
            elements::push(&mut bytes, &decoded);
        }
    }
    Ok(bytes)
}

/// The bytes that an object in base64 stands for; none where it is no such object, or no base64.
fn of_base64(leaf: Value<'_>) -> Option<Vec<u8>> {
    let text = leaf.find(BASE64).filter(|_| is_base64(leaf))?.as_bytes().ok()?;
    STANDARD.decode(&*text).ok()
}

fn no_text(leaf: Value<'_>, input: &PredictInput) -> InferError {
    let found = show(leaf);
    InferError::invalid(format!(
        "input '{}' takes BYTES: a value is {found}, expected a text, or {{\"b64\": \"...\"}} with base64",
        input.name
    ))
}

fn read_halves(
    value: Value<'_>,
    input: &PredictInput,
    count: usize,
    context: DecodeContext<'_>,
) -> Result<Vec<u8>, InferError> {
    let leaves = Leaves::of_any(value);
    let most = count.min(leaves.most()) * size_of::<u16>();
    context.reserve(most)?;
    let mut bytes = Vec::with_capacity(most);
    for leaf in leaves {
        let number = leaf.as_f64().ok().and_then(|value| half::narrow(input.datatype, value));
        let number = number.ok_or_else(|| {
            InferError::invalid(format!(
                "input '{}' takes {}: a value is {}, expected a number in its range",
                input.name,
                input.datatype,
                show(leaf)
            ))
        })?;
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    Ok(bytes)
}
