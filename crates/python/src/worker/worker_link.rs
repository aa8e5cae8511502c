//! `WorkerLink`: what the worker's main loop drives.

use std::os::fd::RawFd;
use std::sync::Arc;

use alipes_link::{Claimed, LogLine, OutMessage, monotonic_ns};
use parking_lot::Mutex;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use smallvec::SmallVec;

use super::answers::{self, Batch};
use super::claim_pace::ClaimPace;
use super::link::{self, Declaration, Link, Stage};
use super::missing_response::failure;
use super::request::InferenceRequest;
use super::{arrays, calls, fork, lifeline};
use crate::detached::detached;

/// The process's link to its server.
#[pyclass(frozen, module = "alipes._core")]
pub struct WorkerLink {
    link: Arc<Link>,
    /// What `claim` gave and `answer` has not answered yet.
    claimed: Mutex<Option<Batch>>,
    /// How many requests `claim` takes at once, where the model runs one after the other.
    pace: Option<Mutex<ClaimPace>>,
}

#[pymethods]
impl WorkerLink {
    #[new]
    #[pyo3(signature = (link_fd, requests_fd, doorbell_fd, declaration, lifeline_fd = None))]
    fn new(
        py: Python<'_>,
        link_fd: RawFd,
        requests_fd: RawFd,
        doorbell_fd: RawFd,
        declaration: &str,
        lifeline_fd: Option<RawFd>,
    ) -> PyResult<Self> {
        let declaration: Declaration =
            serde_json::from_str(declaration).map_err(|error| PyValueError::new_err(error.to_string()))?;
        arrays::prepare(py)?;
        let link = Link::open(py, [link_fd, requests_fd, doorbell_fd], declaration, lifeline_fd)?;
        lifeline::watch(&link)?;
        let pace = paced(&link.declaration).then(|| Mutex::new(ClaimPace::new()));
        Ok(WorkerLink { link, claimed: Mutex::default(), pace })
    }

    /// The model is initialized: requests may come, and models may be called.
    fn ready(&self, py: Python<'_>, checks: bool) -> PyResult<()> {
        self.link.set_stage(Stage::Serving);
        self.send(py, &OutMessage::Ready { checks })
    }

    /// The server's next question whether the model is ready, after the one with this number. `None`: the server asks
    /// the worker to leave.
    fn next_check(&self, py: Python<'_>, last: u64) -> PyResult<Option<u64>> {
        detached(py, || Ok(self.link.end.next_check(last)))
    }

    fn checked(&self, py: Python<'_>, number: u64, ready: bool) -> PyResult<()> {
        self.send(py, &OutMessage::Checked { number, ready })
    }

    fn failed(&self, py: Python<'_>, text: &str) -> PyResult<()> {
        self.send(py, &OutMessage::Failed { text })
    }

    fn finalized(&self, py: Python<'_>) -> PyResult<()> {
        self.link.set_stage(Stage::Leaving);
        self.send(py, &OutMessage::Finalized)
    }

    fn log(&self, py: Python<'_>, level: u8, file: String, line: u32, text: String) -> PyResult<()> {
        self.send(py, &OutMessage::Log(&LogLine { level, file, line, text }))
    }

    /// Whether the server wants verbose lines now.
    fn is_verbose(&self) -> bool {
        self.link.end.is_verbose()
    }

    /// Claims, executes and answers until the server asks the worker to leave.
    fn serve(&self, py: Python<'_>, execute: &Bound<'_, PyAny>, describe: &Bound<'_, PyAny>) -> PyResult<()> {
        while let Some((batch, requests)) = self.next(py)? {
            let returned = execute.call1((&requests,)).map_err(|error| text(describe, error));
            self.note(&batch);
            answers::settle(py, &self.link, batch, Some(requests), returned);
        }
        Ok(())
    }

    /// Claims requests for an execution, which `answer` or `answer_failure` ends. `None`: the server asks the worker to
    /// leave.
    ///
    /// For a thread of a script, where the model's code must not run below `serve`: Python ends the threads that are
    /// left at its end by unwinding their stacks, and may not unwind this one's.
    fn claim<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let Some((batch, requests)) = self.next(py)? else { return Ok(None) };
        *self.claimed.lock() = Some(batch);
        Ok(Some(requests))
    }

    /// Answers what was claimed with what the model returned: the one element of the list, which is empty afterwards.
    fn answer(&self, py: Python<'_>, returned: &Bound<'_, PyList>) -> PyResult<()> {
        let value = returned.get_item(0)?;
        returned.del_slice(0, 1)?;
        self.settle(py, Ok(value));
        Ok(())
    }

    /// Answers what was claimed with the text of an exception.
    fn answer_failure(&self, py: Python<'_>, text: String) {
        self.settle(py, Err(text));
    }

    /// Fails those of the requests that are not answered yet, after their execution has ended.
    fn fail(&self, py: Python<'_>, requests: &Bound<'_, PyList>, message: &str) {
        let text = failure(&self.link.declaration.instance, message);
        let replies = requests.iter().filter_map(|item| item.cast::<InferenceRequest>().ok()?.get().reply().cloned());
        let replies: SmallVec<[_; 8]> = replies.collect();
        answers::log_failure(py, &self.link, &text);
        py.detach(|| replies.iter().for_each(|reply| reply.fail(&text)));
    }

    /// Has calls of this thread go over this link: that of a script that has several.
    fn bind(&self) {
        link::bind(Some(Arc::clone(&self.link)));
    }

    /// Lets go of the server: that of an attached instance, which ends with this.
    fn close(&self) {
        link::bind(None);
        lifeline::end(&self.link);
    }

    /// Whether the server has let go of the instance, or is gone.
    fn is_abandoned(&self) -> bool {
        self.link.end.is_abandoned()
    }

    fn call(&self, py: Python<'_>, name: &str, json: &str) -> PyResult<String> {
        calls::control(py, &self.link, name, json)
    }
}

impl WorkerLink {
    fn settle(&self, py: Python<'_>, returned: Result<Bound<'_, PyAny>, String>) {
        // Taken first: the lock is not held while Python may run.
        let claimed = self.claimed.lock().take();
        if let Some(batch) = claimed {
            self.note(&batch);
            answers::settle(py, &self.link, batch, None, returned);
        }
    }

    /// Notes how long an execution took.
    fn note(&self, batch: &Batch) {
        if let Some(pace) = &self.pace {
            pace.lock().note(batch.replies.len(), monotonic_ns().saturating_sub(batch.began_ns));
        }
    }

    fn send(&self, py: Python<'_>, message: &OutMessage<'_>) -> PyResult<()> {
        self.link.send(py, message, 0).map_err(PyOSError::new_err)
    }

    /// The next requests; blocks without the interpreter. `None`: the server asks the worker to leave.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<(Batch, Bound<'py, PyList>)>> {
        // A process that was forked in an execution, and came back from it, would take its parent's requests.
        if self.link.is_forked() {
            return Err(PyOSError::new_err(fork::NOT_OURS));
        }
        let max_rows = self.pace.as_ref().map_or(self.link.declaration.max_rows, |pace| pace.lock().requests());
        let (claimed, requests) = detached(py, || {
            let mut requests = Vec::new();
            Ok((self.link.end.claim(max_rows, &mut requests), requests))
        })?;
        if claimed == Claimed::Stop {
            self.link.set_stage(Stage::Leaving);
            return Ok(None);
        }
        let claimed_ns = requests.first().map_or(0, |request| request.claimed_ns);
        self.link.set_parent(requests.first().map_or(0, |request| request.ticket));
        let mut replies = SmallVec::new();
        let mut objects: SmallVec<[Py<InferenceRequest>; 8]> = SmallVec::new();
        for request in requests {
            let (request, reply) = InferenceRequest::received(&self.link, request);
            replies.push(reply);
            objects.push(Py::new(py, request)?);
        }
        let batch = Batch { replies, claimed_ns, began_ns: monotonic_ns() };
        Ok(Some((batch, PyList::new(py, objects)?)))
    }
}

/// Whether several requests are claimed at once though they are executed one after the other: the executor of endpoints
/// does that. Streams go on after their execution.
fn paced(declaration: &Declaration) -> bool {
    declaration.endpoint && declaration.max_rows == 0 && !declaration.decoupled
}

/// What an exception of a model's is called in its answers.
fn text(describe: &Bound<'_, PyAny>, error: PyErr) -> String {
    // The exception object by itself may not know the way that it came: before Python 3.12 that lies beside it.
    let raised = error.into_value(describe.py()).into_bound(describe.py());
    let text = describe.call1((&raised,)).and_then(|text| text.extract::<String>());
    text.unwrap_or_else(|_| PyErr::from_value(raised.into_any()).to_string())
}
