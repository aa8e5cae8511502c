//! Parks a thread until a moment that another thread can bring forward.
//!
//! Nothing else of the server is named here, for the reason that `drive_loop` gives.

use std::time::Instant;

use super::lock::{Condvar, Mutex};

/// Where the thread that drives an instance waits for a batch to become due.
#[derive(Debug, Default)]
pub struct Parker {
    woken: Mutex<bool>,
    wake: Condvar,
}

impl Parker {
    /// Blocks until the moment or the next `unpark`; one that came before sticks.
    pub fn park_until(&self, moment: Instant) {
        let mut woken = self.woken.lock();
        while !*woken {
            if self.wake.wait_until(&mut woken, moment).timed_out() {
                break;
            }
        }
        *woken = false;
    }

    /// Wakes the thread.
    pub fn unpark(&self) {
        *self.woken.lock() = true;
        self.wake.notify_one();
    }
}
