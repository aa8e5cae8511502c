//! A request's slot in a link: who owns it, where its frame lies, and how much its senders may send.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::entry::Entry;
use crate::futex::Bell;
use crate::memory::Shared;

/// The state of a slot. The numbers stand in shared memory; 0, with ticket 0, is a slot that was never used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum State {
    /// Published, and the server's to take back.
    Waiting = 1,
    /// The worker's, up to its last answer.
    Claimed = 2,
    /// Taken back.
    Revoked = 3,
}

/// A state and the ticket that it is about in one word, so that one exchange settles whose the request is.
pub(crate) const fn word(ticket: u64, state: State) -> u64 {
    ticket << 2 | state as u64
}

/// An entry of the slot table.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub(crate) struct RequestSlot {
    state: AtomicU64,
    /// The ticket of a cancelled request; a ticket rather than a flag, so that it needs no reset.
    cancelled: AtomicU64,
    /// The ticket of a request whose caller has left, likewise.
    left: AtomicU64,
    frame_offset: AtomicU64,
    frame_len: AtomicU32,
    rows: AtomicU32,
    key: AtomicU64,
    group: AtomicU64,
    /// What the caller has consumed of its responses since the request was published.
    consumed_responses: AtomicU64,
    consumed_bytes: AtomicU64,
    credit: Bell,
}

// SAFETY: atomics, and a structure of atomics.
unsafe impl Shared for RequestSlot {}

impl RequestSlot {
    /// Puts a request into the slot. It waits from now on.
    pub fn publish(&self, entry: &Entry) {
        self.frame_offset.store(entry.frame.0, Ordering::Relaxed);
        self.frame_len.store(entry.frame.1, Ordering::Relaxed);
        self.rows.store(entry.rows, Ordering::Relaxed);
        self.key.store(entry.key, Ordering::Relaxed);
        self.group.store(entry.group, Ordering::Relaxed);
        self.consumed_responses.store(0, Ordering::Relaxed);
        self.consumed_bytes.store(0, Ordering::Relaxed);
        self.state.store(word(entry.ticket, State::Waiting), Ordering::Release);
    }

    /// Whether a ticket is in this state.
    pub fn is(&self, ticket: u64, state: State) -> bool {
        self.state.load(Ordering::Acquire) == word(ticket, state)
    }

    /// The server takes the request back.
    pub fn revoke(&self, ticket: u64) -> bool {
        self.turn(ticket, State::Revoked)
    }

    /// The worker takes the request.
    pub fn claim(&self, ticket: u64) -> bool {
        self.turn(ticket, State::Claimed)
    }

    fn turn(&self, ticket: u64, state: State) -> bool {
        let waiting = word(ticket, State::Waiting);
        self.state.compare_exchange(waiting, word(ticket, state), Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The request that waits in the slot, if it has this ticket. Its slot and ticket being the same before a
    /// successful [`RequestSlot::claim`], so was everything else.
    pub fn waiting(&self, slot: u32, ticket: u64) -> Option<Entry> {
        self.is(ticket, State::Waiting).then(|| Entry {
            slot,
            ticket,
            rows: self.rows.load(Ordering::Relaxed),
            key: self.key.load(Ordering::Relaxed),
            group: self.group.load(Ordering::Relaxed),
            frame: (self.frame_offset.load(Ordering::Relaxed), self.frame_len.load(Ordering::Relaxed)),
        })
    }

    /// The caller of the ticket wants it to end, and takes its responses up to the last.
    pub fn cancel(&self, ticket: u64) {
        self.cancelled.store(ticket, Ordering::Release);
    }

    pub fn is_cancelled(&self, ticket: u64) -> bool {
        self.cancelled.load(Ordering::Acquire) == ticket
    }

    /// Nobody waits for the ticket. The credit bell is to be rung afterwards, as after [`RequestSlot::consumed`].
    pub fn caller_left(&self, ticket: u64) {
        self.cancel(ticket);
        self.left.store(ticket, Ordering::Release);
    }

    pub fn has_caller(&self, ticket: u64) -> bool {
        self.left.load(Ordering::Acquire) != ticket
    }

    pub fn consumed(&self, responses: u32, bytes: u64) {
        self.consumed_responses.fetch_add(responses.into(), Ordering::Relaxed);
        self.consumed_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Responses and bytes consumed so far.
    pub fn consumption(&self) -> (u64, u64) {
        (self.consumed_responses.load(Ordering::Relaxed), self.consumed_bytes.load(Ordering::Relaxed))
    }

    /// Where senders wait until something is consumed, or the caller has left.
    pub fn credit(&self) -> &Bell {
        &self.credit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: Entry = Entry { slot: 3, ticket: 77, rows: 4, key: 5, group: 6, frame: (64, 100) };

    #[test]
    fn a_request_is_claimed_or_revoked_but_never_both() {
        let slot = RequestSlot::default();
        slot.publish(&ENTRY);
        assert_eq!(slot.waiting(3, 77), Some(ENTRY));
        assert!(slot.claim(77));
        assert!(!slot.revoke(77) && !slot.claim(77));
        slot.publish(&Entry { ticket: 78, ..ENTRY });
        assert!(slot.revoke(78));
        assert!(!slot.claim(78) && !slot.revoke(78));
        assert_eq!(slot.waiting(3, 78), None);
    }

    #[test]
    fn a_ticket_of_the_past_changes_nothing() {
        let slot = RequestSlot::default();
        slot.publish(&ENTRY);
        assert!(!slot.revoke(76) && !slot.claim(76));
        assert!(slot.is(77, State::Waiting));
        assert!(!slot.is_cancelled(77));
    }

    #[test]
    fn counters_begin_anew_with_each_request() {
        let slot = RequestSlot::default();
        slot.publish(&ENTRY);
        slot.consumed(2, 100);
        slot.cancel(77);
        assert!(slot.has_caller(77));
        slot.caller_left(77);
        assert_eq!(slot.consumption(), (2, 100));
        slot.publish(&Entry { ticket: 78, ..ENTRY });
        assert_eq!(slot.consumption(), (0, 0));
        assert!(!slot.is_cancelled(78) && slot.is_cancelled(77));
        assert!(slot.has_caller(78) && !slot.has_caller(77));
    }
}
