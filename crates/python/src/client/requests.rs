//! Requests from Python, encoded for the wire that they leave by.

use alipes_client::{Outgoing, Verb, Wire, grpc, http};
use alipes_protocol::codec::proto::{MessageInput, MessageOutput, RequestMessage};
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PySequence, PyTuple};

use super::inputs;
use super::parameters::{self, Parameters};

/// What an inference is asked with.
pub struct Question<'a, 'py> {
    pub model: &'a str,
    pub version: &'a str,
    pub inputs: &'a Bound<'py, PySequence>,
    pub outputs: Option<&'a Bound<'py, PySequence>>,
    pub request_id: &'a str,
    pub parameters: Option<&'a Bound<'py, PyDict>>,
}

impl Question<'_, '_> {
    /// The request; it holds the inputs' memory where that is large.
    pub fn encode(&self, wire: Wire) -> PyResult<Outgoing> {
        let inputs = inputs::read(self.inputs)?;
        let described: Vec<MessageInput<'_>> = inputs.iter().map(inputs::Input::message_input).collect();
        let wanted = self.outputs.map(outputs).transpose()?.unwrap_or_default();
        let wanted: Vec<MessageOutput<'_>> =
            wanted.iter().map(|(name, parameters)| MessageOutput { name, parameters }).collect();
        let parameters = self.parameters.map(parameters::read).transpose()?.unwrap_or_default();
        let message = RequestMessage {
            model_name: self.model,
            model_version: self.version,
            id: self.request_id,
            parameters: &parameters,
            inputs: &described,
            outputs: &wanted,
        };
        let owned = |index: usize| inputs[index].lent();
        Ok(encode(&message, wire, owned))
    }
}

/// An inference as it leaves; `owned` gives the elements of an input that need not be copied.
pub fn encode(message: &RequestMessage<'_>, wire: Wire, owned: impl Fn(usize) -> Option<Bytes>) -> Outgoing {
    match wire {
        Wire::Grpc => grpc::unary::infer(message, owned),
        Wire::Http => http::request::infer(message, owned),
    }
}

/// Outputs: names, or tuples of a name and parameters that tell the place.
fn outputs(described: &Bound<'_, PySequence>) -> PyResult<Vec<(PyBackedStr, Parameters)>> {
    let read = |one: Bound<'_, PyAny>| -> PyResult<(PyBackedStr, Parameters)> {
        match one.cast::<PyTuple>() {
            Ok(pair) => {
                let place = pair.get_item(1)?;
                Ok((pair.get_item(0)?.extract()?, parameters::read(place.cast::<PyDict>()?)?))
            }
            Err(_) => Ok((one.extract()?, Parameters::new())),
        }
    };
    described.try_iter()?.map(|one| read(one?)).collect()
}

/// A call that is no inference. gRPC: a method and its message. HTTP: a path, and the JSON of its body.
pub fn control(wire: Wire, path: &str, body: Option<&[u8]>) -> Outgoing {
    match (wire, body) {
        (Wire::Grpc, body) => grpc::unary::control(path, body.unwrap_or_default()),
        (Wire::Http, None) => plain(path, Verb::Get, Vec::new()),
        (Wire::Http, Some(body)) => plain(path, Verb::Post, body.to_vec()),
    }
}

fn plain(path: &str, verb: Verb, body: Vec<u8>) -> Outgoing {
    let (path, pieces, headers) = (path.to_owned(), vec![body.into()], Vec::new());
    Outgoing { path, verb, json_length: None, pieces, infer: false, sequence: None, headers }
}
