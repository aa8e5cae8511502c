//! `ResponseIterator`: the responses of a decoupled model that was called.

use std::sync::Arc;

use alipes_link::OutMessage;
use parking_lot::Mutex;
use pyo3::prelude::*;

use super::calls;
use super::link::Link;
use super::response::InferenceResponse;

/// Gives each response as it comes. After its end it can be gone through again.
#[pyclass(frozen, module = "c_python_backend_utils")]
pub struct ResponseIterator {
    link: Arc<Link>,
    call: u64,
    state: Mutex<IteratorState>,
}

#[derive(Default)]
struct IteratorState {
    seen: Vec<Py<InferenceResponse>>,
    next: usize,
    ended: bool,
}

impl ResponseIterator {
    pub fn new(link: Arc<Link>, call: u64) -> ResponseIterator {
        ResponseIterator { link, call, state: Mutex::default() }
    }

    /// No further response comes. True: that was not so before.
    fn end(&self) -> bool {
        let was_open = !std::mem::replace(&mut self.state.lock().ended, true);
        if was_open {
            self.link.mailbox.close(&self.link, self.call);
        }
        was_open
    }
}

#[pymethods]
impl ResponseIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        let mut state = slf.get().state.lock();
        if state.ended && state.next >= state.seen.len() {
            state.next = 0;
        }
        drop(state);
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<InferenceResponse>>> {
        let mut state = self.state.lock();
        if let Some(response) = state.seen.get(state.next).map(|response| response.clone_ref(py)) {
            state.next += 1;
            return Ok(Some(response));
        }
        if state.ended {
            return Ok(None);
        }
        drop(state);
        let Some(received) = calls::next_response(py, &self.link, self.call) else {
            // Cancelled by another thread, unless the server has left.
            self.end();
            return Ok(None);
        };
        let (response, last) = received?;
        let response = Py::new(py, response)?;
        let mut state = self.state.lock();
        state.seen.push(response.clone_ref(py));
        state.next = state.seen.len();
        drop(state);
        if last {
            self.end();
        }
        Ok(Some(response))
    }

    /// Tells the called model that no further response is wanted.
    fn cancel(&self) {
        if self.end() {
            self.link.send_from_drop(&OutMessage::CallCancelled { id: self.call });
        }
    }
}

impl Drop for ResponseIterator {
    fn drop(&mut self) {
        self.cancel();
    }
}
