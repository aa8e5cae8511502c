//! No batching: first come, first served, one request at a time.

use std::collections::VecDeque;
use std::time::Instant;

use crate::scheduler::Next;
use crate::why::{Outlook, Why};

/// The scheduler of a model without batching: each request is a batch of its own, in the order of arrival.
#[derive(Debug)]
pub struct Direct<W> {
    queue: VecDeque<W>,
}

impl<W> Default for Direct<W> {
    fn default() -> Self {
        Direct { queue: VecDeque::new() }
    }
}

impl<W> Direct<W> {
    pub(crate) fn enqueue(&mut self, work: W) {
        self.queue.push_back(work);
    }

    pub(crate) fn put_back(&mut self, works: impl DoubleEndedIterator<Item = W>) {
        works.rev().for_each(|work| self.queue.push_front(work));
    }

    pub(crate) fn next(&mut self, batch: &mut Vec<W>) -> Next {
        match self.queue.pop_front() {
            Some(work) => {
                batch.push(work);
                Next::Take
            }
            None => Next::Idle,
        }
    }

    /// The first request goes at once.
    pub(crate) fn outlook(&self, now: Instant) -> Option<Outlook> {
        (!self.queue.is_empty()).then_some(Outlook { due: now, requests: 1, why: Why::Alone })
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &W> {
        self.queue.iter()
    }

    pub(crate) fn remove_where(&mut self, mut pick: impl FnMut(&W) -> bool, mut removed: impl FnMut(W)) {
        // One turn of the ring keeps the order, moves each request once and allocates nothing.
        for _ in 0..self.queue.len() {
            let Some(work) = self.queue.pop_front() else { return };
            if pick(&work) {
                removed(work);
            } else {
                self.queue.push_back(work);
            }
        }
    }
}
