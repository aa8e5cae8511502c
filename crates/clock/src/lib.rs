//! The time of the data plane: one function, [`now`], which a test can hold and move. Beside it [`coarse_ns`], for what
//! is timed so often that `now` would be felt, and [`thread_cpu_ns`].
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

use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

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

/// A moment of the system's calendar, in the time since the beginning of 1970, as one of this clock; now where it lies
/// ahead.
///
/// It is as long ago as both clocks say at this moment: right as long as nobody has set the calendar in between.
pub fn from_unix(since: Duration) -> Instant {
    let calendar = Duration::from_nanos(nanoseconds(clock_gettime(ClockId::Realtime)));
    // In this order: where the thread waits for a processor in between, the moment is too late, never too early.
    let moment = now();
    moment.checked_sub(calendar.saturating_sub(since)).unwrap_or(moment)
}

/// Nanoseconds since an unknown moment, as of the system's last tick; never 0.
///
/// A reading takes about a quarter of the time of [`now`] and lags behind by up to [`coarse_tick_ns`]. In tests it is
/// exact and follows the clock that the thread has entered.
#[inline(always)]
pub fn coarse_ns() -> u64 {
    #[cfg(debug_assertions)]
    if let Some(ns) = held::coarse_ns() {
        return ns;
    }
    nanoseconds(clock_gettime(ClockId::MonotonicCoarse)).max(1)
}

/// Nanoseconds between two ticks of [`coarse_ns`]: 1 to 10 ms, and 0 where the thread has entered another clock.
pub fn coarse_tick_ns() -> u64 {
    #[cfg(debug_assertions)]
    if held::now().is_some() {
        return 0;
    }
    nanoseconds(clock_getres(ClockId::MonotonicCoarse))
}

/// Nanoseconds for which the calling thread has had a processor.
pub fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// A reading of one of these clocks, of which none is negative.
#[inline(always)]
fn nanoseconds(Timespec { tv_sec, tv_nsec }: Timespec) -> u64 {
    tv_sec.unsigned_abs() * 1_000_000_000 + tv_nsec.unsigned_abs()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests compare with the clock of the system")]
mod tests {
    use super::*;

    #[test]
    fn the_coarse_clock_lags_behind_by_a_tick_at_most() {
        let tick = Duration::from_nanos(coarse_tick_ns());
        assert!(tick > Duration::ZERO && tick <= Duration::from_millis(10), "{tick:?}");
        let (begin, before) = (Instant::now(), coarse_ns());
        while begin.elapsed() < 3 * tick {}
        let after = coarse_ns();
        let exact = begin.elapsed();
        assert!(after > before);
        assert!(Duration::from_nanos(after - before) <= exact + tick);
    }

    #[test]
    fn a_moment_of_the_calendar_is_as_long_ago_on_both_clocks() {
        let calendar = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let second = Duration::from_secs(1);
        let (before, known, after) = (now(), from_unix(calendar() - second), now());
        assert!(before <= known + second && known + second <= after);
        let ahead = from_unix(calendar() + second);
        assert!(after <= ahead && ahead <= now());
    }

    #[test]
    fn a_thread_uses_processor_time_while_it_works_and_none_while_it_sleeps() {
        let begin = thread_cpu_ns();
        while thread_cpu_ns() - begin < 1_000_000 {}
        let worked = thread_cpu_ns();
        std::thread::sleep(Duration::from_millis(100));
        assert!(thread_cpu_ns() - worked < 50_000_000);
    }
}
