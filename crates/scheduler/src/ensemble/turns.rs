//! Whose turn it is at the steps that keep a state.
//!
//! Requests of one sequence overtake each other where a step between answers out of order. A step that keeps a state has
//! to see them in the order in which they came, so each calls it only when those before it have, or never will.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use slab::Slab;

/// A request's place in the line of its sequence.
#[derive(Debug, PartialEq, Eq)]
pub struct Ticket {
    line: usize,
    number: u64,
}

/// The lines of all sequences that are under way in an ensemble. What waits is opaque.
#[derive(Debug)]
pub struct Turns<K, W> {
    lines: Slab<Line<K, W>>,
    by_key: HashMap<K, usize>,
    steps: usize,
}

#[derive(Debug)]
struct Line<K, W> {
    key: K,
    /// Tickets that were given.
    issued: u64,
    /// Requests that have one and have not left.
    present: usize,
    /// By step.
    turns: Vec<Turn<W>>,
}

#[derive(Debug)]
struct Turn<W> {
    /// The number whose turn it is.
    at: u64,
    /// Later ones that have passed already.
    passed: BTreeSet<u64>,
    /// Those that wanted to call before their turn.
    waiting: BTreeMap<u64, W>,
}

impl<K: Clone + Eq + Hash, W> Turns<K, W> {
    /// No lines yet, for so many steps.
    pub fn new(steps: usize) -> Self {
        Turns { lines: Slab::new(), by_key: HashMap::new(), steps }
    }

    /// Puts a request at the end of its sequence's line. It has to [leave](Self::leave) it again, however it ends.
    pub fn join(&mut self, key: K) -> Ticket {
        let Turns { lines, by_key, steps } = self;
        let new = || {
            let turns =
                (0..*steps).map(|_| Turn { at: 0, passed: BTreeSet::new(), waiting: BTreeMap::new() }).collect();
            lines.insert(Line { key: key.clone(), issued: 0, present: 0, turns })
        };
        let place = *by_key.entry(key.clone()).or_insert_with(new);
        let line = &mut lines[place];
        line.issued += 1;
        line.present += 1;
        Ticket { line: place, number: line.issued - 1 }
    }

    /// Whether it is the request's turn at a step. If not, what waits is given back when it is.
    pub fn may_call(&mut self, ticket: &Ticket, step: usize, waits: impl FnOnce() -> W) -> bool {
        let turn = &mut self.lines[ticket.line].turns[step];
        let may = turn.at >= ticket.number;
        if !may {
            turn.waiting.insert(ticket.number, waits());
        }
        may
    }

    /// The request has called the step, for the last time; gives back whoever has waited for that.
    pub fn pass(&mut self, ticket: &Ticket, step: usize) -> Option<W> {
        self.lines[ticket.line].turns[step].pass(ticket.number)
    }

    /// The request is over: it calls no step any more. Those who have waited for that are moved into `next`.
    pub fn leave(&mut self, ticket: Ticket, next: &mut Vec<W>) {
        let line = &mut self.lines[ticket.line];
        for turn in &mut line.turns {
            turn.waiting.remove(&ticket.number);
            next.extend(turn.pass(ticket.number));
        }
        line.present -= 1;
        if line.present == 0 {
            let line = self.lines.remove(ticket.line);
            self.by_key.remove(&line.key);
        }
    }

    /// Sequences that are under way.
    pub fn lines(&self) -> usize {
        self.lines.len()
    }
}

impl<W> Turn<W> {
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
