//! The slot table as the server keeps it: with its own record, since the worker can scribble over the table.

use parking_lot::Mutex;

use crate::entry::Entry;
use crate::layout::Link;
use crate::message::{Answer, Violation};
use crate::request_slot::{RequestSlot, State};

/// The slots of a link.
#[derive(Debug)]
pub(crate) struct RequestSlots {
    pub link: Link,
    /// The ticket in each slot; 0 where there is none.
    tickets: Mutex<Box<[u64]>>,
}

impl RequestSlots {
    pub fn new(link: Link) -> RequestSlots {
        let tickets = Mutex::new(vec![0; link.layout.geometry.slots as usize].into());
        RequestSlots { link, tickets }
    }

    pub fn occupy(&self, entries: &[Entry]) {
        let mut tickets = self.tickets.lock();
        for entry in entries {
            let ticket = &mut tickets[entry.slot as usize];
            assert!(*ticket == 0, "lane {} holds the request {ticket}", entry.slot);
            assert!(entry.ticket != 0 && entry.ticket < 1 << 48, "ticket {} does not fit an entry", entry.ticket);
            *ticket = entry.ticket;
            self.link.slot(entry.slot).publish(entry);
        }
    }

    pub fn revoke(&self, slot: u32, ticket: u64) -> bool {
        let mut tickets = self.tickets.lock();
        let Some(held) = tickets.get_mut(slot as usize).filter(|held| **held == ticket && ticket != 0) else {
            return false;
        };
        let revoked = self.link.slot(slot).revoke(ticket);
        if revoked {
            *held = 0;
        }
        revoked
    }

    /// Does something to a slot while a request is in it.
    fn with<T>(&self, slot: u32, ticket: u64, act: impl FnOnce(&RequestSlot) -> T) -> Option<T> {
        let tickets = self.tickets.lock();
        let held = tickets.get(slot as usize).is_some_and(|held| *held == ticket && ticket != 0);
        held.then(|| act(self.link.slot(slot)))
    }

    /// Changes something that a sender may wait for, and wakes it, without the lock.
    fn change(&self, slot: u32, ticket: u64, act: impl FnOnce(&RequestSlot)) {
        if self.with(slot, ticket, act).is_some() {
            self.link.slot(slot).credit().ring();
        }
    }

    pub fn is_claimed(&self, slot: u32, ticket: u64) -> bool {
        self.with(slot, ticket, |slot| !slot.is(ticket, State::Waiting)).unwrap_or(false)
    }

    pub fn settle(&self, answers: &[Answer]) -> Result<(), Violation> {
        let mut tickets = self.tickets.lock();
        for &Answer { slot, ticket, last, .. } in answers {
            let unknown =
                || Violation::new(format!("an answer to request {ticket} in lane {slot}, which is not in the worker"));
            let held = tickets.get_mut(slot as usize).filter(|held| **held == ticket && ticket != 0);
            let held = held.ok_or_else(unknown)?;
            if !self.link.slot(slot).is(ticket, State::Claimed) {
                return Err(Violation::new(format!(
                    "an answer to request {ticket} in lane {slot}, which was not claimed"
                )));
            }
            if last {
                *held = 0;
            }
        }
        Ok(())
    }

    /// Wakes the worker if it sleeps.
    pub fn wake(&self) {
        self.link.header().request_bell.ring();
    }

    /// Wakes the worker's thread that waits for the answer to a call.
    pub fn wake_caller(&self) {
        self.link.header().mail_bell.ring();
    }

    pub fn cancel(&self, slot: u32, ticket: u64) {
        self.change(slot, ticket, |slot| slot.cancel(ticket));
    }

    pub fn caller_left(&self, slot: u32, ticket: u64) {
        self.change(slot, ticket, |slot| slot.caller_left(ticket));
    }

    pub fn consumed(&self, slot: u32, ticket: u64, responses: u32, bytes: u64) {
        self.change(slot, ticket, |slot| slot.consumed(responses, bytes));
    }
}
