//! From a `ModelInferRequest` to a request.

use bytes::Bytes;
use compact_str::CompactString;
use prost::Message;

use super::contents;
use super::inference::ModelInferRequest;
use super::inference::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};
use super::parameters;
use super::region::slice_of;
use super::weight::parsed_bytes;
use crate::codec::requested;
use crate::limits::MAX_DIMENSIONS;
use crate::{Datatype, InferError, InferRequest, NoRegions, Regions, RequestedOutput, Shape, Tensor, TritonRelease};

/// The request that the message carries; raw contents stay slices of the message's buffer, and tensors in shared memory
/// come from `regions`.
///
/// What can only be judged against the model (names, shapes, sizes) is left to the one who knows it.
///
/// # Errors
/// Parameters of the wrong type, inputs without data or with two kinds of it, unknown datatypes, absurd shapes, and
/// what `regions` does not have; an output that is asked for twice, in releases after 2.51.
pub fn decode_request(
    message: ModelInferRequest,
    release: TritonRelease,
    regions: &mut impl Regions,
) -> Result<InferRequest, InferError> {
    let mut request = InferRequest { id: CompactString::from(message.id), ..InferRequest::default() };
    parameters::read_request(message.parameters, &mut request)?;
    let mut raw = RawContents::new(message.raw_input_contents);
    request.inputs.reserve_exact(message.inputs.len());
    for input in message.inputs {
        request.inputs.push(decode_input(input, &mut raw, &message.model_name, release, regions)?);
    }
    request.outputs.reserve_exact(message.outputs.len());
    for output in message.outputs {
        request.outputs.push(decode_output(output, regions)?);
    }
    requested::check_names_differ(&request.outputs, &request.id, release)?;
    Ok(request)
}

/// The request that a serialized message carries, as the latest release reads it, where none of it lies in shared
/// memory.
///
/// # Errors
/// What is no such message, has more entries than are read, or as `decode_request`.
pub fn read_request(message: Bytes) -> Result<InferRequest, InferError> {
    parsed_bytes(&message)?;
    let message = ModelInferRequest::decode(message)
        .map_err(|error| InferError::invalid(format!("the request message cannot be read: {error}")))?;
    decode_request(message, TritonRelease::default(), &mut NoRegions)
}

/// The raw contents, handed to the inputs in order; what is left over is ignored, as Triton does.
struct RawContents {
    /// The message has raw contents, so no input may have typed ones.
    any: bool,
    rest: std::vec::IntoIter<Bytes>,
}

impl RawContents {
    fn new(contents: Vec<Bytes>) -> RawContents {
        RawContents { any: !contents.is_empty(), rest: contents.into_iter() }
    }
}

fn decode_input(
    input: InferInputTensor,
    raw: &mut RawContents,
    model: &str,
    release: TritonRelease,
    regions: &mut impl Regions,
) -> Result<Tensor, InferError> {
    if input.shape.len() > MAX_DIMENSIONS {
        return Err(too_many_dimensions(&input, model));
    }
    let datatype = Datatype::from_name(&input.datatype);
    let data = input_data(&input, datatype, raw, model, release, regions)?;
    let datatype = datatype.ok_or_else(|| unknown_datatype(&input, model))?;
    Ok(Tensor { name: CompactString::from(input.name), datatype, shape: Shape::from_slice(&input.shape), data })
}

fn input_data(
    input: &InferInputTensor,
    datatype: Option<Datatype>,
    raw: &mut RawContents,
    model: &str,
    release: TritonRelease,
    regions: &mut impl Regions,
) -> Result<Bytes, InferError> {
    let name = &input.name;
    if let Some(slice) = slice_of(&input.parameters, name)? {
        if input.contents.is_some() {
            return Err(contents_and_region(name, model));
        }
        // A datatype that is unknown is refused behind this.
        return regions.input(slice, datatype.unwrap_or(Datatype::Bytes), &input.shape);
    }
    match &input.contents {
        Some(_) if raw.any => Err(contents_and_raw(name, model)),
        Some(contents) => contents::bytes_of(contents, datatype, name, model, release),
        None => raw.rest.next().ok_or_else(|| no_data(name, model)),
    }
}

fn decode_output(
    output: InferRequestedOutputTensor,
    regions: &mut impl Regions,
) -> Result<RequestedOutput, InferError> {
    let slice = slice_of(&output.parameters, &output.name)?;
    let classification = parameters::classification(&output.parameters)?;
    let in_region = slice.is_some();
    if let Some(slice) = slice {
        if classification > 0 {
            return Err(classification_and_region());
        }
        regions.output(slice, &output.name)?;
    }
    Ok(RequestedOutput { name: CompactString::from(output.name), binary: None, classification, in_region })
}

fn too_many_dimensions(input: &InferInputTensor, model: &str) -> InferError {
    InferError::invalid(format!(
        "input '{}' for model '{model}' has {} dimensions, but at most {MAX_DIMENSIONS} are allowed",
        input.name,
        input.shape.len()
    ))
}

fn unknown_datatype(input: &InferInputTensor, model: &str) -> InferError {
    let known = Datatype::ALL.map(Datatype::name).join(", ");
    InferError::invalid(format!(
        "inference input '{}' for model '{model}' has the unknown data-type '{}', expected one of {known}",
        input.name, input.datatype
    ))
}

fn contents_and_region(input: &str, model: &str) -> InferError {
    InferError::invalid(format!(
        "unexpected 'content' provided when using shared memory for input tensor '{input}' for model '{model}'"
    ))
}

fn contents_and_raw(input: &str, model: &str) -> InferError {
    InferError::invalid(format!(
        "contents field must not be specified when using raw_input_contents for '{input}' for model '{model}'"
    ))
}

fn no_data(input: &str, model: &str) -> InferError {
    InferError::invalid(format!("unable to find data for input tensor '{input}' for model '{model}' in request."))
}

fn classification_and_region() -> InferError {
    InferError::invalid("output can't set both 'shared_memory_region' and 'classification'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoRegions;

    fn message(inputs: usize, raw: Vec<Bytes>) -> ModelInferRequest {
        let input = |index: usize| InferInputTensor {
            name: format!("I{index}"),
            datatype: "UINT8".to_owned(),
            shape: vec![2],
            ..Default::default()
        };
        ModelInferRequest {
            model_name: "m".to_owned(),
            inputs: (0..inputs).map(input).collect(),
            raw_input_contents: raw,
            ..Default::default()
        }
    }

    fn decode(message: ModelInferRequest) -> Result<InferRequest, InferError> {
        decode_request(message, TritonRelease::default(), &mut NoRegions)
    }

    #[test]
    fn raw_contents_stay_where_they_are() {
        let buffer = Bytes::from_static(b"abcd");
        let request = decode(message(2, vec![buffer.slice(..2), buffer.slice(2..)])).unwrap();
        assert_eq!(request.inputs[1].data.as_ptr(), buffer[2..].as_ptr());
        assert_eq!(request.inputs[1].name, "I1");
    }

    #[test]
    fn more_raw_contents_than_inputs_are_ignored_and_fewer_refused() {
        assert!(decode(message(1, vec![Bytes::new(), Bytes::new()])).is_ok());
        let error = decode(message(2, vec![Bytes::new()])).unwrap_err();
        assert_eq!(error.message, "unable to find data for input tensor 'I1' for model 'm' in request.");
    }

    #[test]
    fn an_unknown_datatype_is_named_with_the_known_ones() {
        let mut message = message(1, vec![Bytes::new()]);
        message.inputs[0].datatype = "FLOAT".to_owned();
        let error = decode(message).unwrap_err();
        assert!(error.message.contains("unknown data-type 'FLOAT'") && error.message.ends_with("BYTES, BF16"));
    }

    #[test]
    fn a_shape_without_end_is_refused() {
        let mut message = message(1, vec![Bytes::new()]);
        message.inputs[0].shape = vec![1; MAX_DIMENSIONS + 1];
        let error = decode(message).unwrap_err();
        assert_eq!(error.message, "input 'I0' for model 'm' has 65 dimensions, but at most 64 are allowed");
    }
}
