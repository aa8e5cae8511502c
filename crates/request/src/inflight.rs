//! The number of requests in flight, and the end of admission when the server drains.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use alipes_protocol::{Code, InferError};
use parking_lot::{Condvar, Mutex};

/// Set in the counter once no request is admitted any more.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// Requests that were admitted and are not finished.
#[derive(Default)]
pub struct Inflight {
    // The count, and the closed mark in its highest bit: one atomic decides between admission and rejection.
    count: AtomicUsize,
    left: Mutex<()>,
    empty: Condvar,
}

/// Counts one request until it is dropped.
pub struct Admission<'a>(&'a Inflight);

/// Counts one request until it is dropped; it may outlive the call.
pub struct OwnedAdmission(Arc<Inflight>);

/// The error of a request that comes while the server stops.
pub fn stopping() -> InferError {
    InferError::new(Code::Unavailable, "Server is stopping, it does not accept new requests")
}

/// The error of a request that the server cannot finish before it ends.
pub fn unfinished() -> InferError {
    InferError::new(Code::Unavailable, "Server is stopping, the request was not finished in time")
}

impl Inflight {
    /// Admits a request.
    ///
    /// # Errors
    ///
    /// `Unavailable` once closed.
    pub fn enter(&self) -> Result<Admission<'_>, InferError> {
        self.count_in().map(|()| Admission(self))
    }

    /// Admits a request that outlives the call which brought it.
    ///
    /// # Errors
    ///
    /// As for `enter`.
    pub fn enter_owned(self: &Arc<Self>) -> Result<OwnedAdmission, InferError> {
        self.count_in().map(|()| OwnedAdmission(Arc::clone(self)))
    }

    fn count_in(&self) -> Result<(), InferError> {
        let before = self.count.fetch_add(1, Ordering::AcqRel);
        if before & CLOSED == 0 {
            return Ok(());
        }
        self.count_out();
        Err(stopping())
    }

    fn count_out(&self) {
        let before = self.count.fetch_sub(1, Ordering::AcqRel);
        if before == CLOSED | 1 {
            let _left = self.left.lock();
            self.empty.notify_all();
        }
    }

    /// Whether admission is closed.
    pub fn is_closed(&self) -> bool {
        self.count.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Closes admission.
    pub fn close(&self) {
        self.count.fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// Waits until the last request is finished; false where the deadline came first.
    pub fn wait_empty(&self, deadline: Instant) -> bool {
        let mut left = self.left.lock();
        while self.count.load(Ordering::Acquire) & !CLOSED != 0 {
            if self.empty.wait_until(&mut left, deadline).timed_out() {
                return self.count.load(Ordering::Acquire) & !CLOSED == 0;
            }
        }
        true
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        self.0.count_out();
    }
}

impl Drop for OwnedAdmission {
    fn drop(&mut self) {
        self.0.count_out();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_closed_counter_refuses_and_waits_for_admitted_requests() {
        let inflight = Inflight::default();
        let admission = inflight.enter().unwrap();
        inflight.close();
        assert_eq!(inflight.enter().err().unwrap().code, Code::Unavailable);
        assert!(!inflight.wait_empty(alipes_clock::now()));
        drop(admission);
        assert!(inflight.wait_empty(alipes_clock::now() + Duration::from_secs(5)));
    }
}
