//! What is scheduled, and how it comes back when it is refused.

use std::time::Instant;

/// One request as the scheduler sees it.
pub trait Work {
    /// Rows of the request along the batch dimension; a model without one has requests of one row. Zero counts as one.
    fn rows(&self) -> u32;

    /// Requests with different keys never share a batch: their tensors could not be joined along axis 0, for instance
    /// because a wildcard dimension differs or because another set of optional inputs is given.
    fn key(&self) -> u64 {
        0
    }
}

/// Why a request was not taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The scheduler was stopped: its version drains, and only what waits already will still run.
    Stopping,
}

/// A request that was not taken in, given back to the caller who still owes it an answer.
#[derive(Debug)]
pub struct Refused<W> {
    /// The request, untouched.
    pub work: W,
    /// Why.
    pub reason: Reason,
}

/// A waiting request and the moment from which its delay counts.
#[derive(Debug)]
pub(crate) struct Waiting<W> {
    pub(crate) entered: Instant,
    pub(crate) work: W,
}
