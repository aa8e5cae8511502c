//! The clock that server and workers share: nanoseconds of CLOCK_MONOTONIC, the clock behind Rust's `Instant`.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Number of readings that compare two clocks.
const READINGS: u32 = 5;

/// One moment on both clocks.
static ORIGIN: LazyLock<(Instant, u64)> = LazyLock::new(|| at_once(alipes_clock::system));

/// The time on another clock, and on this one at the same moment. The two are read one after the other, and the thread
/// may be preempted in between, for seconds: the fastest of several readings counts.
pub fn at_once<T>(other: impl Fn() -> T) -> (T, u64) {
    compared(now_ns, other)
}

fn compared<T>(ours: impl Fn() -> u64, other: impl Fn() -> T) -> (T, u64) {
    let read = || {
        let before = ours();
        let shown = other();
        let took = ours().saturating_sub(before);
        (took, shown, before + took / 2)
    };
    let (_, shown, ns) = (1..READINGS).fold(read(), |best, _| {
        let next = read();
        if next.0 < best.0 { next } else { best }
    });
    (shown, ns)
}

/// The time now, in nanoseconds.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64).saturating_mul(1_000_000_000) + now.tv_nsec as u64
}

/// An instant in nanoseconds of the shared clock.
pub fn ns(moment: Instant) -> u64 {
    let (origin, origin_ns) = *ORIGIN;
    let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    match moment.checked_duration_since(origin) {
        Some(later) => origin_ns.saturating_add(nanos(later)),
        None => origin_ns.saturating_sub(nanos(origin.duration_since(moment))),
    }
}

/// The instant of a time on the shared clock; now, where `Instant` cannot represent it.
pub fn instant(ns: u64) -> Instant {
    let (origin, origin_ns) = *ORIGIN;
    let moment = match ns.checked_sub(origin_ns) {
        Some(later) => origin.checked_add(Duration::from_nanos(later)),
        None => origin.checked_sub(Duration::from_nanos(origin_ns - ns)),
    };
    moment.unwrap_or_else(alipes_clock::now)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn two_clocks_are_compared_where_least_came_between() {
        let (now, readings) = (Cell::new(0), Cell::new(0));
        let other = || {
            let number = readings.replace(readings.get() + 1);
            now.set(now.get() + if number == 3 { 10 } else { 1000 });
            number
        };
        assert_eq!(compared(|| now.get(), other), (3, 3005));
    }

    #[test]
    fn a_moment_is_the_same_there_and_back() {
        let moment = alipes_clock::now();
        assert_eq!(instant(ns(moment)), moment);
    }
}
