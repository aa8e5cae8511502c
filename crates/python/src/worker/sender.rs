//! `InferenceResponseSender`: answers a request from any thread, also after `execute` has returned.

use std::sync::Arc;

use pyo3::prelude::*;

use super::errors::{refused, wrong_call};
use super::outputs::Draft;
use super::reply::{Reply, Sending};
use super::response::InferenceResponse;

const SUPPORTED: &str = "InferenceResponseSender, response: c_python_backend_utils.InferenceResponse = None, \
                         flags: int = 0";

/// `TRITONSERVER_RESPONSE_COMPLETE_FINAL`.
const FINAL: u32 = 1;

/// Sends responses to one request.
#[pyclass(frozen, module = "c_python_backend_utils")]
pub struct InferenceResponseSender {
    reply: Arc<Reply>,
}

impl InferenceResponseSender {
    pub fn new(reply: Arc<Reply>) -> InferenceResponseSender {
        InferenceResponseSender { reply }
    }
}

#[pymethods]
impl InferenceResponseSender {
    /// Sends a response, the end, or both at once. Waits, without the interpreter, while too much lies before the
    /// caller.
    #[pyo3(signature = (response = None, flags = 0))]
    fn send(&self, py: Python<'_>, response: Option<&Bound<'_, PyAny>>, flags: u32) -> PyResult<()> {
        let response = match response {
            None => None,
            Some(argument) => {
                Some(argument.cast::<InferenceResponse>().map_err(|_| wrong_call("send", SUPPORTED, argument))?)
            }
        };
        if flags != FINAL && flags != 0 {
            return Err(refused("Unable to send response. Unsupported flag provided."));
        }
        if flags == 0 && response.is_none() {
            return Err(refused("Inference Response object must be provided when the response flags is set to zero."));
        }
        let draft = response.map(|response| Draft::of(py, response.get(), &self.reply)).transpose()?;
        self.reply.send(py, &Sending { draft: draft.as_ref(), last: flags == FINAL }).map_err(refused)
    }

    fn is_cancelled(&self) -> bool {
        self.reply.is_cancelled()
    }
}
