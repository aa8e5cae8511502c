//! Runs that an execution on a thread of the pool starts: the next steps of ensembles.
//!
//! The answers of one batch give each request its next step. Started one by one on other threads, that step ran with
//! the requests that had come so far, and each step woke a thread: a batch of thirty fell to pieces behind a network
//! that takes its time. So what an execution starts is collected until all of its answers are out, and driven then: on
//! this thread, or on one other where requests wait for the model that this thread executes.
//!
//! A sentence through the ensemble `matcher` of `examples/questions`, of which every request went step by step, took
//! 186 instead of 253 µs of the server's CPU, of which the words that its tokenizer remembers saved 30 (64 connections,
//! four rounds that alternate, a busy machine, 11/2026).
//!
//! Nothing else of the server is named here, for the reason that `drive_loop` gives.

use std::collections::VecDeque;
use std::mem;

/// The runs that a thread has collected.
pub struct Following<R> {
    runs: VecDeque<R>,
    /// What starts is collected.
    is_open: bool,
    /// Somebody further up the stack drives what is collected.
    is_driven: bool,
}

impl<R> Default for Following<R> {
    fn default() -> Self {
        Following { runs: VecDeque::new(), is_open: false, is_driven: false }
    }
}

impl<R> Following<R> {
    /// Begins or ceases to collect; says which of the two it was before.
    pub fn set_open(&mut self, is_open: bool) -> bool {
        mem::replace(&mut self.is_open, is_open)
    }

    /// Takes a run; gives it back while nothing is collected.
    pub fn push(&mut self, run: R) -> Result<(), R> {
        if !self.is_open {
            return Err(run);
        }
        self.runs.push_back(run);
        Ok(())
    }

    /// Whether there are runs that nobody drives.
    pub fn is_left(&self) -> bool {
        !self.runs.is_empty() && !self.is_driven
    }

    /// From now on the caller drives what is collected, and these runs.
    pub fn begin(&mut self, runs: VecDeque<R>) {
        self.is_driven = true;
        self.runs.extend(runs);
    }

    /// The next run for the caller.
    pub fn next(&mut self) -> Option<R> {
        self.runs.pop_front()
    }

    /// Nobody drives them any more; what is left goes to others.
    pub fn end(&mut self) -> VecDeque<R> {
        self.is_driven = false;
        mem::take(&mut self.runs)
    }
}
