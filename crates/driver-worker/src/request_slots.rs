//! The requests that one worker holds: each has a slot from its placement until it is executed and answered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use alipes_link::Placed;
use alipes_protocol::trace::Trace;
use alipes_request::chain::Chain;
use alipes_runtime::model::Pending;
use alipes_stats::statistics::Shares;

use super::worker_turns::Group;

/// A request that was placed in a worker's ring.
pub struct InFlight {
    /// The request, until its last answer. Its inputs are kept, so that it can still be placed elsewhere while the
    /// worker has not claimed it.
    pub pending: Option<Pending>,
    /// When it was taken in.
    pub arrived: Instant,
    /// Its rows.
    pub rows: u32,
    /// Whose calls led to it.
    pub chain: Option<Arc<Chain>>,
    /// What the steps of its ensemble have computed.
    pub shares: Option<Arc<Shares>>,
    /// Its record, where it is traced.
    pub trace: Option<Arc<Trace>>,
    /// Its number, unique among the requests of the model version.
    pub ticket: u64,
    /// Those that came with its turn; none of a sample that warms the worker up, and none once its turn has ended.
    pub turn: Option<Group>,
    /// Its frame and inputs in shared memory.
    pub placed: Option<Placed>,
    /// `execute` has returned for it.
    pub executed: bool,
    /// It was given a response, be it an error.
    pub responded: bool,
    /// It failed in the backend.
    pub failed: bool,
    /// It only fills the row of a sequence, and counts for nothing.
    pub is_filler: bool,
    /// When it was first seen to be claimed.
    pub claimed: Option<Instant>,
}

impl InFlight {
    /// Whether nothing more is to come for it.
    pub fn is_over(&self) -> bool {
        self.executed && self.pending.is_none()
    }
}

/// The slots of a worker.
pub struct RequestSlots {
    requests: Vec<Option<InFlight>>,
    free: Vec<u32>,
    // In the order of placement; what is over meanwhile is passed over.
    order: VecDeque<(u32, u64)>,
}

impl RequestSlots {
    /// `count` free slots.
    pub fn new(count: u32) -> RequestSlots {
        let requests = (0..count).map(|_| None).collect();
        RequestSlots { requests, free: (0..count).rev().collect(), order: VecDeque::new() }
    }

    /// A free slot, if there is one.
    pub fn acquire(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Gives a slot back that was acquired and not used.
    pub fn release(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Puts a request into an acquired slot.
    pub fn put(&mut self, slot: u32, request: InFlight) {
        if self.order.len() >= 2 * self.requests.len() {
            let requests = &self.requests;
            self.order.retain(|&(slot, ticket)| holds(requests, slot, ticket));
        }
        self.order.push_back((slot, request.ticket));
        self.requests[slot as usize] = Some(request);
    }

    /// The request with this slot and ticket; none where the worker names one that it does not hold.
    pub fn get(&mut self, slot: u32, ticket: u64) -> Option<&mut InFlight> {
        self.requests.get_mut(slot as usize)?.as_mut().filter(|request| request.ticket == ticket)
    }

    /// The request with this ticket, whichever slot it is in.
    pub fn find(&self, ticket: u64) -> Option<&InFlight> {
        self.requests.iter().flatten().find(|request| request.ticket == ticket)
    }

    /// Takes a request out and frees its slot.
    pub fn take(&mut self, slot: u32, ticket: u64) -> Option<InFlight> {
        self.get(slot, ticket)?;
        self.free.push(slot);
        self.requests[slot as usize].take()
    }

    /// The requests that are held, in the order of placement.
    pub fn oldest(&self) -> impl Iterator<Item = (u32, u64)> + use<'_> {
        self.order.iter().copied().filter(|&(slot, ticket)| holds(&self.requests, slot, ticket))
    }

    /// Every request with its slot.
    pub fn all(&mut self) -> impl Iterator<Item = (u32, &mut InFlight)> {
        self.requests.iter_mut().zip(0..).filter_map(|(request, slot)| Some((slot, request.as_mut()?)))
    }

    /// Takes everything out, in the order of placement.
    pub fn drain(&mut self) -> Vec<(u32, InFlight)> {
        let mut all: Vec<(u32, InFlight)> =
            self.requests.iter_mut().zip(0..).filter_map(|(request, slot)| Some((slot, request.take()?))).collect();
        all.sort_unstable_by_key(|(_, request)| request.ticket);
        self.free = (0..self.requests.len() as u32).rev().collect();
        self.order.clear();
        all
    }

    /// How many requests are held.
    pub fn held(&self) -> usize {
        self.requests.len() - self.free.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.requests.len()
    }
}

fn holds(requests: &[Option<InFlight>], slot: u32, ticket: u64) -> bool {
    requests[slot as usize].as_ref().is_some_and(|request| request.ticket == ticket)
}
