//! What a network thread may do with a link.

use std::sync::Arc;

use crate::request_slots::RequestSlots;

/// What a network thread may do without the instance's lock. Calls about requests that have ended do nothing.
#[derive(Clone, Debug)]
pub struct LinkHandle {
    slots: Arc<RequestSlots>,
}

impl LinkHandle {
    pub(crate) fn new(slots: Arc<RequestSlots>) -> LinkHandle {
        LinkHandle { slots }
    }

    /// A caller took this many responses and bytes, so that the model may send more.
    pub fn consumed(&self, slot: u32, ticket: u64, responses: u32, bytes: u64) {
        self.slots.consumed(slot, ticket, responses, bytes);
    }

    /// As [`ServerEnd::cancel`](crate::server_end::ServerEnd::cancel).
    pub fn cancel(&self, slot: u32, ticket: u64) {
        self.slots.cancel(slot, ticket);
    }

    /// As [`ServerEnd::caller_left`](crate::server_end::ServerEnd::caller_left).
    pub fn caller_left(&self, slot: u32, ticket: u64) {
        self.slots.caller_left(slot, ticket);
    }

    /// As [`ServerEnd::wake`](crate::server_end::ServerEnd::wake).
    pub fn wake(&self) {
        self.slots.wake();
    }

    /// As [`ServerEnd::wake_caller`](crate::server_end::ServerEnd::wake_caller).
    pub fn wake_caller(&self) {
        self.slots.wake_caller();
    }
}
