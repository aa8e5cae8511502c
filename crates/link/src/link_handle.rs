//! What a network thread may do with a link.

use std::sync::Arc;

use crate::lanes::Lanes;

/// What a network thread may do without the instance's lock. Calls about requests that have ended do nothing.
#[derive(Clone, Debug)]
pub struct LinkHandle {
    lanes: Arc<Lanes>,
}

impl LinkHandle {
    pub(crate) fn new(lanes: Arc<Lanes>) -> LinkHandle {
        LinkHandle { lanes }
    }

    /// A caller took this many responses and bytes, so that the model may send more.
    pub fn consumed(&self, lane: u32, ticket: u64, responses: u32, bytes: u64) {
        self.lanes.consumed(lane, ticket, responses, bytes);
    }

    /// As [`ServerEnd::cancel`].
    pub fn cancel(&self, lane: u32, ticket: u64) {
        self.lanes.cancel(lane, ticket);
    }

    /// As [`ServerEnd::wake`].
    pub fn wake(&self) {
        self.lanes.wake();
    }

    /// As [`ServerEnd::wake_caller`].
    pub fn wake_caller(&self) {
        self.lanes.wake_caller();
    }
}
