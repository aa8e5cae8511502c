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
    fn deadline(&self) -> Option<Instant>;

    /// Keeps the deadline with the request, so that it is known again where the request is put back. Only policies with
    /// a time-out set one.
    fn set_deadline(&mut self, deadline: Option<Instant>);

    /// The sequence that it belongs to. None is a sequence of its own, of which no other request can be part. Asked
    /// where requests come in sequences, like all that follows.
    fn sequence_id(&self) -> Option<SequenceId> {
        None
    }

    /// Whether it starts or ends its sequence.
    fn membership(&self) -> Membership {
        Membership::default()
    }

    /// Sets the slot of its sequence, before the request enters a batch.
    fn assign_slot(&mut self, _slot_id: SlotId) {}

    /// The slot of its sequence.
    fn slot_id(&self) -> SlotId {
        SlotId::default()
    }
}

/// What ties the requests of a sequence together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SequenceId {
    /// A number.
    Number(u64),
    /// A text.
    Text(Box<str>),
}

/// Whether a request starts or ends its sequence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Membership {
    /// It begins the sequence, whatever came under this id before.
    pub start: bool,
    /// It is the last one.
    pub end: bool,
}

/// A slot of an instance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId {
    /// Number of the instance.
    pub instance: u32,
    /// Number of the slot among the instance's.
    pub slot: u32,
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
    /// Its sequence does not go on, or has never begun, and it does not begin one.
    NotStarted,
    /// Its sequence found no slot in time.
    BacklogExpired,
    /// A request before it in its sequence was withdrawn.
    Interrupted,
    /// The instance that had its sequence is no longer in service.
    InstanceGone,
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
    /// Where its deadline is watched, if it has one.
    pub(crate) watch: Option<usize>,
    pub(crate) work: W,
}
