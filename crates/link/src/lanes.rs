//! The lane table as the server keeps it: with its own record, since the worker can scribble over the table.

use parking_lot::Mutex;

use crate::lane::{Lane, State};
use crate::layout::Link;
use crate::{Answer, Entry, Violation};

/// The lanes of a link.
#[derive(Debug)]
pub(crate) struct Lanes {
    pub link: Link,
    /// The ticket in each lane; 0 where there is none.
    tickets: Mutex<Box<[u64]>>,
}

impl Lanes {
    pub fn new(link: Link) -> Lanes {
        let tickets = Mutex::new(vec![0; link.layout.geometry.lanes as usize].into());
        Lanes { link, tickets }
    }

    pub fn occupy(&self, entries: &[Entry]) {
        let mut tickets = self.tickets.lock();
        for entry in entries {
            let ticket = &mut tickets[entry.lane as usize];
            assert!(*ticket == 0, "lane {} holds the request {ticket}", entry.lane);
            assert!(entry.ticket != 0 && entry.ticket < 1 << 48, "ticket {} does not fit an entry", entry.ticket);
            *ticket = entry.ticket;
            self.link.lane(entry.lane).publish(entry);
        }
    }

    pub fn revoke(&self, lane: u32, ticket: u64) -> bool {
        let mut tickets = self.tickets.lock();
        let Some(held) = tickets.get_mut(lane as usize).filter(|held| **held == ticket && ticket != 0) else {
            return false;
        };
        let revoked = self.link.lane(lane).revoke(ticket);
        if revoked {
            *held = 0;
        }
        revoked
    }

    /// Does something to a lane while a request is in it.
    fn with<T>(&self, lane: u32, ticket: u64, act: impl FnOnce(&Lane) -> T) -> Option<T> {
        let tickets = self.tickets.lock();
        let held = tickets.get(lane as usize).is_some_and(|held| *held == ticket && ticket != 0);
        held.then(|| act(self.link.lane(lane)))
    }

    /// Changes something that a sender may wait for, and wakes it, without the lock.
    fn change(&self, lane: u32, ticket: u64, act: impl FnOnce(&Lane)) {
        if self.with(lane, ticket, act).is_some() {
            self.link.lane(lane).credit().ring();
        }
    }

    pub fn is_claimed(&self, lane: u32, ticket: u64) -> bool {
        self.with(lane, ticket, |lane| !lane.is(ticket, State::Waiting)).unwrap_or(false)
    }

    pub fn settle(&self, answers: &[Answer]) -> Result<(), Violation> {
        let mut tickets = self.tickets.lock();
        for &Answer { lane, ticket, last, .. } in answers {
            let unknown =
                || Violation::new(format!("an answer to request {ticket} in lane {lane}, which is not in the worker"));
            let held = tickets.get_mut(lane as usize).filter(|held| **held == ticket && ticket != 0);
            let held = held.ok_or_else(unknown)?;
            if !self.link.lane(lane).is(ticket, State::Claimed) {
                return Err(Violation::new(format!(
                    "an answer to request {ticket} in lane {lane}, which was not claimed"
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

    /// Wakes whoever waits for the answer to a call.
    pub fn wake_caller(&self) {
        self.link.header().mail_bell.ring();
    }

    pub fn cancel(&self, lane: u32, ticket: u64) {
        self.change(lane, ticket, |lane| lane.cancel(ticket));
    }

    pub fn consumed(&self, lane: u32, ticket: u64, responses: u32, bytes: u64) {
        self.change(lane, ticket, |lane| lane.consumed(responses, bytes));
    }
}
