//! Runs that wait for a thread, and threads that wait for a run.
//!
//! Nothing else of the server is named here, for the reason that `drive_loop` gives.

use std::time::Instant;

use super::lock::{Condvar, Mutex};

/// Where both meet.
pub struct Exchange<R> {
    state: Mutex<ExchangeState<R>>,
    work: Condvar,
}

struct ExchangeState<R> {
    runs: Vec<R>,
    idle_threads: usize,
}

impl<R> Default for Exchange<R> {
    fn default() -> Self {
        Exchange { state: Mutex::new(ExchangeState { runs: Vec::new(), idle_threads: 0 }), work: Condvar::default() }
    }
}

impl<R> Exchange<R> {
    /// Leaves a run. Whether a thread has to be started, since no idle one can come for it.
    pub fn leave(&self, run: R) -> bool {
        let mut state = self.state.lock();
        state.runs.push(run);
        if state.runs.len() > state.idle_threads {
            return true;
        }
        drop(state);
        self.work.notify_one();
        false
    }

    /// A run for the calling thread; none where none has come by then, and the thread may end.
    pub fn next(&self, deadline: Instant) -> Option<R> {
        let mut state = self.state.lock();
        loop {
            if let Some(run) = state.runs.pop() {
                return Some(run);
            }
            state.idle_threads += 1;
            let timed_out = self.work.wait_until(&mut state, deadline).timed_out();
            state.idle_threads -= 1;
            if timed_out && state.runs.is_empty() {
                return None;
            }
        }
    }
}
