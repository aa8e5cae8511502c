//! A sleep until a moment that another thread can cut short.

use std::time::Instant;

use parking_lot::{Condvar, Mutex};

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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_wake_up_before_the_sleep_sticks_once() {
        let nap = Nap::default();
        nap.end();
        nap.until(Instant::now() + Duration::from_secs(3600));
        let short = Instant::now() + Duration::from_millis(1);
        nap.until(short);
        assert!(Instant::now() >= short);
    }
}
