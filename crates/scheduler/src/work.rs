//! What is scheduled, and how it comes back when it is not to be executed.

use std::time::{Duration, Instant};

/// One request as the scheduler sees it.
pub trait Work {
    /// Rows of the request along the batch dimension; a model without one has requests of one row. Zero counts as one.
    fn rows(&self) -> u32;

    /// Requests with different keys never share a batch: their tensors could not be joined along axis 0, for instance
    /// because a wildcard dimension differs or because another set of optional inputs is given.
    fn key(&self) -> u64 {
        0
    }

    /// How urgent its caller says it is: 1 is highest, 0 says nothing.
    fn priority(&self) -> u64 {
        0
    }

    /// The longest wait that its caller asks for; zero where none was asked for.
    fn timeout(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether its caller has withdrawn it. Asked only where some caller has gone.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// When it has waited too long, as the scheduler noted it when it took the request in.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Keeps the deadline with the request, so that it is known again where the request is put back.
    fn set_deadline(&mut self, _deadline: Option<Instant>) {}
}

/// Why a request is given back without having been executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The scheduler was stopped: its version drains, and only what waits already will still run.
    Stopping,
    /// As many requests wait as the queue policy allows.
    QueueFull,
    /// It has waited longer than the queue policy, or its caller, allows.
    Expired,
    /// Its caller has gone.
    Cancelled,
}

/// A request that will not be executed, given back to the caller who still owes it an answer.
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
