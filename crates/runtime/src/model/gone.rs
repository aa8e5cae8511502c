//! Word of a model version's end.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

#[derive(Debug, Default)]
struct Sign {
    shown: Mutex<bool>,
    changed: Condvar,
}

/// Held by a version; dropped with it.
#[derive(Debug, Default)]
pub struct Gone(Arc<Sign>);

/// Tells those who hold it when the version is gone, without keeping it alive.
#[derive(Clone, Debug)]
pub struct Departure(Arc<Sign>);

impl Gone {
    /// For those who wait for the end.
    pub fn departure(&self) -> Departure {
        Departure(Arc::clone(&self.0))
    }
}

impl Drop for Gone {
    fn drop(&mut self) {
        *self.0.shown.lock() = true;
        self.0.changed.notify_all();
    }
}

impl Departure {
    /// Waits for the end; false where the deadline came first.
    pub fn wait_until(&self, deadline: Instant) -> bool {
        let mut shown = self.0.shown.lock();
        while !*shown {
            if self.0.changed.wait_until(&mut shown, deadline).timed_out() {
                break;
            }
        }
        *shown
    }
}
