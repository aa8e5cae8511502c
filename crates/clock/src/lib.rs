//! The time of the data plane: one function, [`now`], which a test can hold and move.
//!
//! In a release build `now` is `Instant::now`. With debug assertions each thread may read another clock instead: one
//! that the test moves ([`Held`]), or one that follows a source such as a paused Tokio runtime ([`follow`]), which
//! jumps to the next timer only when no task is ready. Threads that the test did not enter keep the system's time, so
//! tests can run beside each other in one process.
//!
//! `debug_assertions` decides rather than a Cargo feature: features unify over a workspace build, so that one crate's
//! tests would put the check into everybody's request path, and a second set of features would build every crate twice.

#![forbid(unsafe_code)]

#[cfg(debug_assertions)]
mod held;

use std::time::{Duration, Instant};

#[cfg(debug_assertions)]
pub use held::{Entered, Held, follow};

/// The current moment: the system's, or that of the clock which the calling thread has entered.
#[inline(always)]
pub fn now() -> Instant {
    #[cfg(debug_assertions)]
    if let Some(moment) = held::now() {
        return moment;
    }
    system()
}

/// The system's time, whatever clock the thread has entered: for comparisons with the clocks of other processes.
#[inline(always)]
#[allow(clippy::disallowed_methods, reason = "the one place that asks the system for the time")]
pub fn system() -> Instant {
    Instant::now()
}

/// The time that has passed since `moment`; zero if it lies ahead.
#[inline(always)]
pub fn elapsed(moment: Instant) -> Duration {
    now().saturating_duration_since(moment)
}
