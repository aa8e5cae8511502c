//! Sequences that wait for a slot, first come, first served.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// A place in the backlog: a number that grows, and when the caller stops waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BacklogTicket {
    pub(super) number: u64,
    pub(super) expires: Option<Instant>,
}

/// Who waits for a slot.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    next: u64,
    line: BTreeMap<u64, usize>,
    /// Only those whose callers gave a limit.
    expiries: BTreeSet<(Instant, u64)>,
}

impl Backlog {
    pub(super) fn join(&mut self, key: usize, expires: Option<Instant>) -> BacklogTicket {
        let number = self.next;
        self.next += 1;
        self.line.insert(number, key);
        self.expiries.extend(expires.map(|moment| (moment, number)));
        BacklogTicket { number, expires }
    }

    /// A further request of a sequence may bring an earlier limit for all of it.
    pub(super) fn hurry(&mut self, ticket: &mut BacklogTicket, expires: Option<Instant>) {
        let Some(moment) = expires.filter(|moment| ticket.expires.is_none_or(|known| *moment < known)) else { return };
        self.forget(ticket);
        self.expiries.insert((moment, ticket.number));
        ticket.expires = Some(moment);
    }

    pub(super) fn leave(&mut self, ticket: &BacklogTicket) {
        self.line.remove(&ticket.number);
        self.forget(ticket);
    }

    /// The sequence that has waited longest; it stays until it [leaves](Self::leave).
    pub(super) fn first(&self) -> Option<usize> {
        self.line.first_key_value().map(|(_, &key)| key)
    }

    /// When the first caller stops waiting, and for which sequence.
    pub(super) fn first_expiry(&self) -> Option<(Instant, usize)> {
        let &(moment, number) = self.expiries.first()?;
        Some((moment, *self.line.get(&number)?))
    }

    fn forget(&mut self, ticket: &BacklogTicket) {
        if let Some(moment) = ticket.expires {
            self.expiries.remove(&(moment, ticket.number));
        }
    }
}
