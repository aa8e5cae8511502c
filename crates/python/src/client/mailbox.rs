//! Answers of awaited calls, on their way to an event loop.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use alipes_client::async_pool::Withdrawal;
use alipes_client::mailbox::Mailbox;
use alipes_client::{ClientError, Incoming};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use super::errors::exception;
use super::link::python;
use super::plan;

/// What Python gets of an answer.
#[derive(Clone, Copy)]
pub enum Form {
    /// All that it says.
    Whole,
    /// What the caller of a planned call gets.
    Planned { single: bool },
}

/// An answer, by the number of its call.
pub struct Letter {
    pub number: u64,
    pub form: Form,
    pub outcome: Result<Incoming, ClientError>,
}

/// Answers of awaited calls.
#[pyclass(frozen, module = "alipes._core")]
pub struct ClientMailbox {
    mailbox: Arc<Mailbox<Letter>>,
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
        self.mailbox.take().into_iter().map(|letter| (letter.number, open(py, letter))).collect()
    }
}

impl ClientMailbox {
    pub fn mailbox(&self) -> Arc<Mailbox<Letter>> {
        self.mailbox.clone()
    }
}

/// What a letter brings: an answer, or an exception.
fn open<'py>(py: Python<'py>, letter: Letter) -> Bound<'py, PyAny> {
    let outcome = letter.outcome.map_err(|error| exception(py, &error));
    let answer = outcome.and_then(|answer| match letter.form {
        Form::Whole => python(py, &answer),
        Form::Planned { single } => plan::answer(py, &answer, single),
    });
    answer.unwrap_or_else(|error| error.into_value(py).into_bound(py).into_any())
}

/// A call that is awaited.
#[pyclass(frozen, module = "alipes._core")]
pub struct ClientTask {
    withdrawal: Withdrawal,
}

#[pymethods]
impl ClientTask {
    fn cancel(&self) {
        self.withdrawal.withdraw();
    }
}

impl ClientTask {
    pub fn new(withdrawal: Withdrawal) -> ClientTask {
        ClientTask { withdrawal }
    }
}
