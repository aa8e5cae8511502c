//! Waits for a moment more exactly than the runtime's clock, whose ticks are a millisecond.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A wait that is shorter takes less time than the system needs to wake this thread.
const SHORTEST: Duration = Duration::from_micros(20);

/// A longer wait is ended early, and the rest is spent awake: a system that had nothing to do takes some 100 µs to wake
/// a thread. Half of the requests of a load of 100 each second were 85 µs late, and are 2 µs late with this. It costs a
/// tenth of a core at most, at a thousand waits in a second; where there are more, they are short.
const LONG: Duration = Duration::from_millis(1);
const EARLY: Duration = Duration::from_micros(100);

/// A timer of the system.
pub struct Timer {
    timer: AsyncFd<OwnedFd>,
}

impl Timer {
    /// A timer on the runtime of the calling thread.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn new() -> io::Result<Timer> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        // SAFETY: the timer is owned here, and closed only with the registration.
        let timer = unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) }?;
        Ok(Timer { timer })
    }

    /// Returns at this moment, never before it.
    ///
    /// # Errors
    /// What the system says.
    pub async fn until(&self, moment: Instant) -> io::Result<()> {
        let mut is_awake = false;
        loop {
            let left = moment.saturating_duration_since(alipes_clock::now());
            if left.is_zero() {
                return Ok(());
            }
            if is_awake || left < SHORTEST {
                tokio::task::yield_now().await;
            } else if left < LONG {
                self.sleep(left).await?;
            } else {
                self.sleep(left - EARLY).await?;
                is_awake = true;
            }
        }
    }

    async fn sleep(&self, span: Duration) -> io::Result<()> {
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Timespec { tv_sec: span.as_secs() as i64, tv_nsec: i64::from(span.subsec_nanos()) };
        timerfd_settime(
            self.timer.get_ref(),
            TimerfdTimerFlags::empty(),
            &Itimerspec { it_interval: none, it_value: value },
        )?;
        loop {
            let mut ready = self.timer.readable().await?;
            match rustix::io::read(self.timer.get_ref(), &mut [0_u8; 8]) {
                Ok(_) => return Ok(()),
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_returns_at_the_moment_and_not_before() {
        let timer = Timer::new().unwrap();
        for span in [0, 5, 30, 300, 3_000].map(Duration::from_micros) {
            let moment = alipes_clock::now() + span;
            timer.until(moment).await.unwrap();
            assert!(alipes_clock::now() >= moment);
        }
    }
}
