//! A stream of inference requests.

use std::time::Duration;

use alipes_client::{Put, Stream, Target, Wire};
use alipes_protocol::codec::proto::{MessageInput, MessageOutput, RequestMessage, StreamReply};
use alipes_protocol::error::grpc_name;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyList, PySequence, PyTuple};

use super::errors::exception;
use super::parameters::RequestOptions;
use super::tls::{ClientTls, seal};
use super::waiting::{Deadline, wait};
use super::{inputs, outputs};
use crate::worker::arrays;

/// One stream of inference requests to a server over gRPC.
#[pyclass(frozen, module = "alipes._core")]
pub struct ClientStream {
    stream: Stream,
}

#[pymethods]
impl ClientStream {
    #[new]
    #[pyo3(signature = (address, timeout_s = 10.0, metadata = None, tls = None))]
    fn new(
        py: Python<'_>,
        address: &str,
        timeout_s: f64,
        metadata: Option<Vec<(String, String)>>,
        tls: Option<&ClientTls>,
    ) -> PyResult<ClientStream> {
        arrays::prepare(py)?;
        let limit = Duration::try_from_secs_f64(timeout_s.max(0.0)).unwrap_or(Duration::MAX);
        let target = Target::new(address, Wire::Grpc, metadata.unwrap_or_default(), limit);
        let target = seal(py, target.map_err(|error| exception(py, &error))?, tls)?;
        let stream = py.detach(|| Stream::open(target));
        Ok(ClientStream { stream: stream.map_err(|error| exception(py, &error))? })
    }

    #[pyo3(signature = (
        model, version, inputs, outputs = None, request_id = "", sequence_id = None, sequence_start = false,
        sequence_end = false, parameters = None, timeout_us = 0, priority = 0
    ))]
    #[allow(clippy::too_many_arguments, reason = "what a request of the protocol may say")]
    fn send(
        &self,
        py: Python<'_>,
        model: &str,
        version: &str,
        inputs: &Bound<'_, PySequence>,
        outputs: Option<Vec<PyBackedStr>>,
        request_id: &str,
        sequence_id: Option<&Bound<'_, PyAny>>,
        sequence_start: bool,
        sequence_end: bool,
        parameters: Option<&Bound<'_, PyDict>>,
        timeout_us: u64,
        priority: u64,
    ) -> PyResult<()> {
        let inputs = inputs::read(inputs)?;
        let described: Vec<MessageInput<'_>> = inputs.iter().map(inputs::Input::message_input).collect();
        let wanted = outputs.unwrap_or_default();
        let wanted: Vec<MessageOutput<'_>> =
            wanted.iter().map(|name| MessageOutput { name, parameters: &[] }).collect();
        let options = RequestOptions { sequence_id, sequence_start, sequence_end, parameters, timeout_us, priority };
        let parameters = options.parameters()?;
        let message = RequestMessage {
            model_name: model,
            model_version: version,
            id: request_id,
            parameters: &parameters,
            inputs: &described,
            outputs: &wanted,
        };
        while self.stream.send(&message).map_err(|error| exception(py, &error))? == Put::Full {
            wait(py, &Deadline::after(None), |slice| {
                self.stream.wait_for_room(slice);
                Some(())
            })?;
            py.check_signals()?;
        }
        Ok(())
    }

    #[pyo3(signature = (most, timeout_s = None))]
    fn receive<'py>(
        &self,
        py: Python<'py>,
        most: usize,
        timeout_s: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let received = wait(py, &Deadline::after(timeout_s), |slice| match self.stream.receive(most, slice) {
            Ok(Some(replies)) if replies.is_empty() => None,
            outcome => Some(outcome),
        })?;
        match received {
            None => Ok(Some(PyList::empty(py))),
            Some(outcome) => match outcome.map_err(|error| exception(py, &error))? {
                None => Ok(None),
                Some(replies) => {
                    let tuples = replies.iter().map(|reply| response(py, reply)).collect::<PyResult<Vec<_>>>()?;
                    PyList::new(py, tuples).map(Some)
                }
            },
        }
    }

    fn half_close(&self) {
        self.stream.half_close();
    }

    fn cancel(&self) {
        self.stream.cancel();
    }

    fn status(&self) -> Option<(&'static str, String)> {
        self.stream.status().map(|end| (grpc_name(end.code), end.message))
    }
}

/// Request id, outputs, error, whether it is the last, if the server says so.
fn response<'py>(py: Python<'py>, reply: &StreamReply) -> PyResult<Bound<'py, PyTuple>> {
    let StreamReply { error, reply } = reply;
    let last = reply.last;
    if error.is_empty() {
        let outputs = outputs::dictionary(py, &reply.outputs)?;
        (reply.id.as_str(), outputs, py.None(), last).into_pyobject(py)
    } else {
        (reply.id.as_str(), py.None(), error.as_str(), last).into_pyobject(py)
    }
}
