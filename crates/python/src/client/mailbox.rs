//! Answers of awaited calls, on their way to an event loop.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use alipes_client::mailbox::Mailbox;
use alipes_client::{ClientError, Incoming};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use tokio::task::AbortHandle;

use super::errors::exception;
use super::link::python;

/// Answers of awaited calls.
#[pyclass(frozen, module = "alipes._core")]
pub struct ClientMailbox {
    mailbox: Arc<Mailbox>,
}

#[pymethods]
impl ClientMailbox {
    #[new]
    fn new() -> PyResult<ClientMailbox> {
        let mailbox = Mailbox::new().map_err(|error| PyOSError::new_err(error.to_string()))?;
        Ok(ClientMailbox { mailbox: Arc::new(mailbox) })
    }

    fn fileno(&self) -> i32 {
        self.mailbox.bell().as_raw_fd()
    }

    fn take<'py>(&self, py: Python<'py>) -> Vec<(u64, Bound<'py, PyAny>)> {
        self.mailbox.take().into_iter().map(|(number, outcome)| (number, open(py, outcome))).collect()
    }
}

impl ClientMailbox {
    pub fn mailbox(&self) -> Arc<Mailbox> {
        self.mailbox.clone()
    }
}

/// What a letter brings: an answer, or an exception.
fn open<'py>(py: Python<'py>, outcome: Result<Incoming, ClientError>) -> Bound<'py, PyAny> {
    let answer = outcome.map_err(|error| exception(py, &error)).and_then(|answer| python(py, &answer));
    answer.unwrap_or_else(|error| error.into_value(py).into_bound(py).into_any())
}

/// A call that is awaited.
#[pyclass(frozen, module = "alipes._core")]
pub struct ClientTask {
    handle: AbortHandle,
}

#[pymethods]
impl ClientTask {
    fn cancel(&self) {
        self.handle.abort();
    }
}

impl ClientTask {
    pub fn new(handle: AbortHandle) -> ClientTask {
        ClientTask { handle }
    }
}
