//! A response out of the bytes of its message, for those who asked.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;

use super::contents;
use super::inference::infer_parameter::ParameterChoice;
use super::inference::{InferParameter, InferTensorContents, ModelInferResponse, ModelStreamInferResponse};
use super::write::FINAL_RESPONSE;
use crate::shape::{self, element_count};
use crate::{Datatype, InferError, Parameter, Shape, Tensor, TritonRelease};

/// What a `ModelInferResponse` says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// Which model answered.
    pub model_name: String,
    /// Which version of it, as text.
    pub model_version: String,
    /// The request's id.
    pub id: String,
    /// What the model attached.
    pub parameters: Vec<(String, Parameter)>,
    /// Whether it is the request's last response; `None` where the server does not say.
    pub last: Option<bool>,
    /// The outputs, as slices of the message. Those that lie in shared memory are empty.
    pub outputs: Vec<Tensor>,
    /// Which outputs have no elements here: the caller had them written to shared memory. Servers do not say so.
    pub elsewhere: Vec<usize>,
}

/// What a `ModelStreamInferResponse` says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamReply {
    /// Why there is no response; empty where there is one.
    pub error: String,
    /// The response, or to whom the error belongs.
    pub reply: Reply,
}

impl Reply {
    /// Reads a message; tensors stay slices of it.
    ///
    /// # Errors
    /// What is no such message, or holds outputs that contradict themselves.
    pub fn decode(message: Bytes) -> Result<Reply, InferError> {
        ModelInferResponse::decode(message).map_err(unreadable).and_then(Reply::read)
    }

    fn read(message: ModelInferResponse) -> Result<Reply, InferError> {
        let mut raw = message.raw_output_contents.into_iter();
        let mut outputs = Vec::with_capacity(message.outputs.len());
        let mut elsewhere = Vec::new();
        for (index, output) in message.outputs.into_iter().enumerate() {
            let datatype = Datatype::from_name(&output.datatype).ok_or_else(|| {
                broken(format!("output '{}' has the unknown datatype '{}'", output.name, output.datatype))
            })?;
            // MLServer sends empty contents beside raw ones.
            let typed =
                output.contents.filter(|contents| raw.len() == 0 || *contents != InferTensorContents::default());
            let data = match typed {
                Some(contents) => {
                    let (output, model) = (&output.name, &message.model_name);
                    contents::bytes_of(&contents, Some(datatype), output, model, TritonRelease::default())?
                }
                None => raw.next().unwrap_or_default(),
            };
            let shape = Shape::from_vec(output.shape);
            if is_elsewhere(&shape, &data) {
                elsewhere.push(index);
            } else {
                check_output(&output.name, datatype, &shape, data.len())?;
            }
            outputs.push(Tensor { name: output.name.into(), datatype, shape, data });
        }
        let mut parameters = read_parameters(message.parameters);
        let last = parameters.iter().position(|(key, _)| key == FINAL_RESPONSE);
        let last = last.map(|index| parameters.remove(index).1 == Parameter::Bool(true));
        Ok(Reply {
            model_name: message.model_name,
            model_version: message.model_version,
            id: message.id,
            parameters,
            last,
            outputs,
            elsewhere,
        })
    }
}

impl StreamReply {
    /// Reads a message of a stream; tensors stay slices of it.
    ///
    /// # Errors
    /// As [`Reply::decode`].
    pub fn decode(message: Bytes) -> Result<StreamReply, InferError> {
        let message = ModelStreamInferResponse::decode(message).map_err(unreadable)?;
        let reply = message.infer_response.map(Reply::read).transpose()?.unwrap_or_default();
        if let Some(&index) = reply.elsewhere.first() {
            let output = &reply.outputs[index];
            check_output(&output.name, output.datatype, &output.shape, 0)?;
        }
        Ok(StreamReply { error: message.error_message, reply })
    }
}

/// Whether an output that should have elements has none.
pub fn is_elsewhere(sizes: &[i64], data: &[u8]) -> bool {
    data.is_empty() && element_count(sizes) != Some(0)
}

/// Whether an output has as many bytes as its shape says.
///
/// # Errors
/// If it has not.
pub fn check_output(name: &str, datatype: Datatype, sizes: &[i64], bytes: usize) -> Result<(), InferError> {
    // Each string has at least its length.
    let Some(size) = datatype.size().or((bytes == 0).then_some(4)) else { return Ok(()) };
    match element_count(sizes).and_then(|count| count.checked_mul(size)) {
        Some(expected) if expected == bytes => Ok(()),
        _ => {
            let sizes = shape::text(sizes);
            Err(broken(format!("output '{name}' has {bytes} bytes, which does not fit {datatype} of shape {sizes}")))
        }
    }
}

fn read_parameters(parameters: BTreeMap<String, InferParameter>) -> Vec<(String, Parameter)> {
    let read = |(key, InferParameter { parameter_choice: choice })| Some((key, parameter(choice?)));
    parameters.into_iter().filter_map(read).collect()
}

fn parameter(choice: ParameterChoice) -> Parameter {
    match choice {
        ParameterChoice::BoolParam(value) => Parameter::Bool(value),
        ParameterChoice::Int64Param(value) => Parameter::Int64(value),
        ParameterChoice::StringParam(value) => Parameter::String(value),
        ParameterChoice::DoubleParam(value) => Parameter::Double(value),
        ParameterChoice::Uint64Param(value) => match i64::try_from(value) {
            Ok(value) => Parameter::Int64(value),
            Err(_) => Parameter::Double(value as f64),
        },
    }
}

fn unreadable(error: prost::DecodeError) -> InferError {
    broken(error.to_string())
}

fn broken(what: String) -> InferError {
    InferError::internal(format!("the server's response cannot be read: {what}"))
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::super::inference::model_infer_response::InferOutputTensor;
    use super::super::{ResponseMessage, StreamMessage};
    use super::*;

    fn tensor(bytes: &'static [u8], size: i64) -> Tensor {
        let shape = [size].into_iter().collect();
        Tensor { name: "Y".into(), datatype: Datatype::Uint8, shape, data: Bytes::from_static(bytes) }
    }

    fn wire(error: &str, last: Option<bool>, outputs: &[Tensor]) -> Bytes {
        let response =
            ResponseMessage { model_name: "m", id: "7", final_response: last, outputs, ..Default::default() };
        let mut wire = BytesMut::new();
        StreamMessage { error, response }.write(&mut wire, |_| panic!("nothing is large"));
        wire.freeze()
    }

    #[test]
    fn empty_contents_beside_raw_ones_say_nothing() {
        let (name, datatype, shape) = ("Y".into(), "UINT8".into(), vec![3]);
        let contents = Some(InferTensorContents::default());
        let output = InferOutputTensor { name, datatype, shape, contents, ..Default::default() };
        let raw = vec![Bytes::from_static(b"abc")];
        let message = ModelInferResponse { outputs: vec![output], raw_output_contents: raw, ..Default::default() };
        let reply = Reply::decode(message.encode_to_vec().into()).unwrap();
        assert_eq!((&reply.outputs[0].data[..], reply.elsewhere.len()), (&b"abc"[..], 0));
    }

    #[test]
    fn a_response_comes_back_as_it_was_sent() {
        let outputs = [tensor(b"abc", 3)];
        let read = StreamReply::decode(wire("", Some(false), &outputs)).unwrap();
        assert_eq!((read.error.as_str(), read.reply.id.as_str()), ("", "7"));
        assert_eq!((read.reply.outputs.as_slice(), read.reply.last), (&outputs[..], Some(false)));
        assert!(read.reply.parameters.is_empty() && read.reply.elsewhere.is_empty());
    }

    #[test]
    fn an_error_says_whose_it_is() {
        let read = StreamReply::decode(wire("broken", None, &[])).unwrap();
        assert_eq!((read.error.as_str(), read.reply.id.as_str()), ("broken", "7"));
    }

    #[test]
    fn an_output_of_the_wrong_size_is_refused() {
        let error = StreamReply::decode(wire("", None, &[tensor(b"abc", 4)])).unwrap_err();
        let text =
            "the server's response cannot be read: output 'Y' has 3 bytes, which does not fit UINT8 of shape [4]";
        assert_eq!(error.message, text);
        assert!(StreamReply::decode(Bytes::from_static(b"\xff\xff")).is_err());
    }

    #[test]
    fn typed_contents_and_outputs_in_shared_memory_are_understood() {
        let contents = InferTensorContents { int_contents: vec![5], ..Default::default() };
        let output = |name: &str| InferOutputTensor {
            name: name.to_owned(),
            datatype: "INT32".to_owned(),
            shape: vec![1],
            ..Default::default()
        };
        let message = ModelInferResponse {
            outputs: vec![InferOutputTensor { contents: Some(contents), ..output("A") }, output("B")],
            ..Default::default()
        };
        let reply = Reply::decode(message.encode_to_vec().into()).unwrap();
        assert_eq!((reply.outputs[0].data.as_ref(), reply.outputs[1].data.len()), (&5i32.to_le_bytes()[..], 0));
        assert_eq!(reply.elsewhere, [1]);
    }
}
