//! A sleep until a moment that another thread can cut short.
//!
//! Nothing else of the server is named here, for the reason that `turns` gives.

use std::time::Instant;

use super::lock::{Condvar, Mutex};

/// Where the driver of an instance waits for a batch to become due.
#[derive(Debug, Default)]
pub struct Nap {
    woken: Mutex<bool>,
    wake: Condvar,
}

impl Nap {
    /// Sleeps until the moment or the wake-up; a wake-up that came before sticks.
    pub fn until(&self, moment: Instant) {
        let mut woken = self.woken.lock();
        while !*woken {
            if self.wake.wait_until(&mut woken, moment).timed_out() {
                break;
            }
        }
        *woken = false;
    }

    /// Cuts the sleep short.
    pub fn end(&self) {
        *self.woken.lock() = true;
        self.wake.notify_one();
    }
}
