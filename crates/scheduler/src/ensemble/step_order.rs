//! The order of a sequence's requests at steps that keep a state.
//!
//! Requests of one sequence overtake each other where an earlier step answers out of order. A step that keeps a state
//! must see them in order of arrival. So a request calls such a step only after all earlier ones have called it or
//! never will.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use slab::Slab;

/// The position of a request in its sequence.
#[derive(Debug, PartialEq, Eq)]
pub struct Ticket {
    sequence: usize,
    number: u64,
}

/// The live sequences of an ensemble. What waits is opaque.
#[derive(Debug)]
pub struct StepOrder<K, W> {
    sequences: Slab<LiveSequence<K, W>>,
    by_key: HashMap<K, usize>,
    steps: usize,
}

#[derive(Debug)]
struct LiveSequence<K, W> {
    key: K,
    /// Tickets issued so far.
    issued: u64,
    /// Requests that hold a ticket.
    present: usize,
    /// By step.
    queues: Vec<StepQueue<W>>,
}

#[derive(Debug)]
struct StepQueue<W> {
    /// The number that may call now.
    at: u64,
    /// Later numbers that have passed already.
    passed: BTreeSet<u64>,
    /// What waits for earlier numbers.
    waiting: BTreeMap<u64, W>,
}

impl<K: Clone + Eq + Hash, W> StepOrder<K, W> {
    /// No sequences yet; `steps` steps keep a state.
    pub fn new(steps: usize) -> Self {
        StepOrder { sequences: Slab::new(), by_key: HashMap::new(), steps }
    }

    /// Appends a request to its sequence. The caller must [leave](Self::leave) with the ticket, however the request
    /// ends.
    pub fn join(&mut self, key: K) -> Ticket {
        let StepOrder { sequences, by_key, steps } = self;
        let new = || {
            let queues =
                (0..*steps).map(|_| StepQueue { at: 0, passed: BTreeSet::new(), waiting: BTreeMap::new() }).collect();
            sequences.insert(LiveSequence { key: key.clone(), issued: 0, present: 0, queues })
        };
        let place = *by_key.entry(key.clone()).or_insert_with(new);
        let sequence = &mut sequences[place];
        sequence.issued += 1;
        sequence.present += 1;
        Ticket { sequence: place, number: sequence.issued - 1 }
    }

    /// Whether the request may call the step now. If not, [`pass`](Self::pass) or [`leave`](Self::leave) of an earlier
    /// request returns what waits.
    pub fn may_call(&mut self, ticket: &Ticket, step: usize, waits: impl FnOnce() -> W) -> bool {
        let queue = &mut self.sequences[ticket.sequence].queues[step];
        let may = queue.at >= ticket.number;
        if !may {
            queue.waiting.insert(ticket.number, waits());
        }
        may
    }

    /// The request has called the step for the last time; returns what waited for that.
    pub fn pass(&mut self, ticket: &Ticket, step: usize) -> Option<W> {
        self.sequences[ticket.sequence].queues[step].pass(ticket.number)
    }

    /// The request has ended and calls no further step. Appends what waited for that to `next`.
    pub fn leave(&mut self, ticket: Ticket, next: &mut Vec<W>) {
        let sequence = &mut self.sequences[ticket.sequence];
        for queue in &mut sequence.queues {
            queue.waiting.remove(&ticket.number);
            next.extend(queue.pass(ticket.number));
        }
        sequence.present -= 1;
        if sequence.present == 0 {
            let sequence = self.sequences.remove(ticket.sequence);
            self.by_key.remove(&sequence.key);
        }
    }

    /// The number of live sequences.
    pub fn sequences(&self) -> usize {
        self.sequences.len()
    }
}

impl<W> StepQueue<W> {
    fn pass(&mut self, number: u64) -> Option<W> {
        if number > self.at {
            self.passed.insert(number);
            return None;
        }
        if number < self.at {
            return None;
        }
        self.at += 1;
        while self.passed.remove(&self.at) {
            self.at += 1;
        }
        self.waiting.remove(&self.at)
    }
}
