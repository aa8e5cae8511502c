//! `ResponseIterator`: the responses of a decoupled model that was called.

use std::sync::Arc;

use alipes_link::{OutMessage, WorkerEnd};
use parking_lot::Mutex;
use pyo3::prelude::*;

use super::calls;
use super::link::Link;
use super::response::InferenceResponse;

/// Most responses of an iterator whose tensors lie in memory that the server lends, and most bytes of these tensors.
/// The calling model may keep all responses that it goes through, and the called model sends further ones only while
/// few are on loan: tensors beyond these limits are copied.
const MAX_BORROWED_RESPONSES: usize = 16;
const MAX_BORROWED_BYTES: usize = 4 << 20;

const _: () = assert!(2 * (MAX_BORROWED_RESPONSES as u64) < WorkerEnd::MAX_WAITING_RESPONSES);
const _: () = assert!(2 * (MAX_BORROWED_BYTES as u64) < WorkerEnd::MAX_WAITING_BYTES);

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
    borrowed: usize,
    borrowed_bytes: usize,
    ended: bool,
}

impl IteratorState {
    /// Whether one more response of so many bytes may stay in borrowed memory, which counts it then.
    fn borrow(&mut self, bytes: usize) -> bool {
        let borrowed_bytes = self.borrowed_bytes + bytes;
        let fits = self.borrowed < MAX_BORROWED_RESPONSES && borrowed_bytes <= MAX_BORROWED_BYTES;
        if fits {
            self.borrowed += 1;
            self.borrowed_bytes = borrowed_bytes;
        }
        fits
    }
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
        drop(state);
        let Some(response) = self.take(py)? else { return Ok(None) };
        let mut state = self.state.lock();
        state.seen.push(response.clone_ref(py));
        state.next = state.seen.len();
        Ok(Some(response))
    }

    /// The next response, which is not kept to be gone through again; `None` after the last. Not a method of Triton's.
    fn take(&self, py: Python<'_>) -> PyResult<Option<Py<InferenceResponse>>> {
        if self.state.lock().ended {
            return Ok(None);
        }
        let may_borrow = |bytes| self.state.lock().borrow(bytes);
        let Some(received) = calls::next_response(py, &self.link, self.call, may_borrow) else {
            // Closed by another thread, unless the server has left.
            self.end();
            return Ok(None);
        };
        let (response, last) = received?;
        if last {
            self.end();
        }
        Py::new(py, response).map(Some)
    }

    /// Has the called model learn that its request is cancelled. Its responses still come, up to the last.
    fn cancel(&self) {
        if !self.state.lock().ended {
            self.link.send_from_drop(&OutMessage::CallCancelled { id: self.call });
        }
    }

    /// Takes no further response, also where a thread waits for one. Not a method of Triton's.
    fn close(&self) {
        if self.end() {
            self.link.send_from_drop(&OutMessage::CallDropped { id: self.call });
        }
    }
}

impl Drop for ResponseIterator {
    fn drop(&mut self) {
        self.close();
    }
}
