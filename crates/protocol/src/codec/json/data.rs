//! `data` of an input, value by value, as Triton reads it: nesting is forgotten and only the number of values counts.

use super::DecodeContext;
use super::error::Within;
use super::value::{Leaves, Value};
use crate::codec::elements;
use crate::datatype::fits_fp32;
use crate::shape::element_count;
use crate::{Code, Datatype, InferError, TritonRelease};

/// What Triton says of values that are more than the shape has elements, and 2.51 also of fewer.
const TOO_MANY_VALUES: &str = "Shape does not match true shape of 'data' field";

/// The bytes of a tensor from its `data`.
///
/// # Errors
///
/// A shape without end, a datatype that JSON cannot carry, values of another type, too few or too many of them, more
/// bytes than one input may have.
pub(super) fn read(
    data: Option<Value<'_>>,
    datatype: Option<Datatype>,
    shape: &[i64],
    input: &str,
    context: DecodeContext<'_>,
) -> Result<Vec<u8>, InferError> {
    let count = element_count(shape).ok_or_else(|| too_many_elements(input))?;
    // Triton does not look at the data of an empty tensor.
    let (Some(data), true) = (data, count > 0) else { return Ok(Vec::new()) };
    let leaves = Leaves::of(data).within("Unable to parse 'data'")?;
    read_leaves(leaves, datatype.ok_or_else(|| unknown_datatype(input))?, count, input, context)
}

/// The bytes of a tensor of `count` elements from its values.
///
/// # Errors
///
/// As for [`read`].
pub fn read_leaves(
    leaves: Leaves<'_>,
    datatype: Datatype,
    count: usize,
    input: &str,
    context: DecodeContext<'_>,
) -> Result<Vec<u8>, InferError> {
    let bytes = match datatype {
        Datatype::Bytes => read_strings(leaves, context)?,
        _ => {
            let size = element_size(count, datatype, input)?;
            let read = reader(datatype, context.options.release).ok_or_else(|| unsupported(datatype, input))?;
            check_limit(count * size, input, context)?;
            context.reserve(count.min(leaves.most()) * size)?;
            let bytes = read_values(leaves, count, size, read).within("Unable to parse 'data'")?;
            if bytes.len() < count * size {
                return Err(too_few_values(context.options.release));
            }
            bytes
        }
    };
    check_limit(bytes.len(), input, context)?;
    Ok(bytes)
}

/// Elements of `BYTES` tensors; their number is checked against the shape later, together with those of binary tensors.
fn read_strings(leaves: Leaves<'_>, context: DecodeContext<'_>) -> Result<Vec<u8>, InferError> {
    let mut bytes = Vec::new();
    if context.asks_for_memory() {
        // Undoing escapes makes an element shorter. The quotation marks are not part of it.
        let most = leaves.clone().map(|leaf| elements::PREFIX_BYTES + leaf.len().saturating_sub(2)).sum();
        context.reserve(most)?;
        bytes.reserve_exact(most);
    }
    for leaf in leaves {
        elements::push(&mut bytes, &leaf.as_bytes().within("Unable to parse JSON bytes array")?);
    }
    Ok(bytes)
}

/// Reads a value as 64 bits, little-endian; a tensor keeps as many of the first bytes as its elements have.
type Read = fn(Value<'_>) -> Result<[u8; 8], InferError>;

/// How values of a datatype are read; `None` where JSON does not carry them. FP32 is the nearest to the double.
fn reader(datatype: Datatype, release: TritonRelease) -> Option<Read> {
    match datatype {
        _ if !release.is_later() => cutting_reader(datatype),
        Datatype::Uint8 => Some(unsigned::<u8>),
        Datatype::Uint16 => Some(unsigned::<u16>),
        Datatype::Uint32 => Some(unsigned::<u32>),
        Datatype::Int8 => Some(signed::<i8>),
        Datatype::Int16 => Some(signed::<i16>),
        Datatype::Int32 => Some(signed::<i32>),
        Datatype::Fp32 => Some(|leaf| {
            let value = leaf.as_f64()?;
            if fits_fp32(value) { Ok(u64::from((value as f32).to_bits()).to_le_bytes()) } else { Err(beyond()) }
        }),
        _ => cutting_reader(datatype),
    }
}

fn unsigned<T: TryFrom<u64>>(leaf: Value<'_>) -> Result<[u8; 8], InferError> {
    let value = leaf.as_u64()?;
    T::try_from(value).map(|_| value.to_le_bytes()).map_err(|_| beyond())
}

fn signed<T: TryFrom<i64>>(leaf: Value<'_>) -> Result<[u8; 8], InferError> {
    let value = leaf.as_i64()?;
    T::try_from(value).map(|_| value.to_le_bytes()).map_err(|_| beyond())
}

fn beyond() -> InferError {
    InferError::invalid("a number lies beyond the range of the input's datatype")
}

/// How values of a datatype are read where a number that is too large is cut to the tensor's width; `None` where JSON
/// does not carry them. Source: recorded behaviour of Triton 2.51.
fn cutting_reader(datatype: Datatype) -> Option<Read> {
    match datatype {
        Datatype::Bool => Some(|leaf| leaf.as_bool().map(|value| u64::from(value).to_le_bytes())),
        Datatype::Uint8 | Datatype::Uint16 | Datatype::Uint32 | Datatype::Uint64 => {
            Some(|leaf| leaf.as_u64().map(u64::to_le_bytes))
        }
        Datatype::Int8 | Datatype::Int16 | Datatype::Int32 | Datatype::Int64 => {
            Some(|leaf| leaf.as_i64().map(i64::to_le_bytes))
        }
        Datatype::Fp32 => Some(|leaf| leaf.as_f64().map(|value| u64::from((value as f32).to_bits()).to_le_bytes())),
        Datatype::Fp64 => Some(|leaf| leaf.as_f64().map(f64::to_le_bytes)),
        Datatype::Fp16 | Datatype::Bf16 | Datatype::Bytes => None,
    }
}

/// The values as bytes of a tensor, unless they are more than its `count` elements.
fn read_values(leaves: Leaves<'_>, count: usize, size: usize, read: Read) -> Result<Vec<u8>, InferError> {
    // Each value takes a byte and a comma, so a shape that lies reserves no more than the text justifies.
    let mut bytes = Vec::with_capacity(count.min(leaves.most()) * size);
    for (before, leaf) in leaves.enumerate() {
        if before == count {
            return Err(InferError::internal(TOO_MANY_VALUES));
        }
        bytes.extend_from_slice(&read(leaf)?[..size]);
    }
    Ok(bytes)
}

/// Bytes of an element, after a check that `count` of them can be counted.
fn element_size(count: usize, datatype: Datatype, input: &str) -> Result<usize, InferError> {
    let size = datatype.size().unwrap_or(1);
    match count.checked_mul(size) {
        Some(bytes) if i64::try_from(bytes).is_ok() => Ok(size),
        _ => Err(InferError::invalid(format!(
            "byte size overflow for input '{input}': element count ({count}) * data type size ({size}) exceeds maximum \
             allowed size ({})",
            i64::MAX
        ))),
    }
}

fn unsupported(datatype: Datatype, input: &str) -> InferError {
    InferError::invalid(format!(
        "receiving {datatype} data via JSON is not supported. Please use the binary data format for input {input}"
    ))
}

fn check_limit(bytes: usize, input: &str, context: DecodeContext<'_>) -> Result<(), InferError> {
    if bytes <= context.options.max_input_bytes {
        return Ok(());
    }
    Err(InferError::new(
        Code::TooLarge,
        format!(
            "JSON input '{input}' has a byte_size ({bytes} bytes) that exceeds the maximum allowed value of {} \
             bytes. Use --http-max-input-size to increase the limit.",
            context.options.max_input_bytes
        ),
    ))
}

fn too_few_values(release: TritonRelease) -> InferError {
    InferError::internal(match release {
        TritonRelease::V2_51 => format!("Unable to parse 'data': {TOO_MANY_VALUES}"),
        TritonRelease::V2_73 => "Failed to parse 'data' field: shape does not match true shape".to_owned(),
    })
}

/// The answer to a datatype that the protocol does not have.
pub(super) fn unknown_datatype(input: &str) -> InferError {
    InferError::invalid(format!("invalid datatype for input {input}"))
}

/// The answer to a shape whose elements 64 bits cannot count.
pub(super) fn too_many_elements(input: &str) -> InferError {
    InferError::invalid(format!(
        "shape of input '{input}' causes total element count to exceed maximum size of {}",
        i64::MAX
    ))
}
