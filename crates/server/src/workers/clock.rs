//! The clock that server and workers share: nanoseconds of CLOCK_MONOTONIC, which Rust's `Instant` counts as well.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// One moment on both clocks.
static ORIGIN: LazyLock<(Instant, u64)> = LazyLock::new(|| (Instant::now(), now_ns()));

/// Now, as a worker counts it.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64).saturating_mul(1_000_000_000) + now.tv_nsec as u64
}

/// A moment, as a worker would count it.
pub fn ns(moment: Instant) -> u64 {
    let (origin, origin_ns) = *ORIGIN;
    let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    match moment.checked_duration_since(origin) {
        Some(later) => origin_ns.saturating_add(nanos(later)),
        None => origin_ns.saturating_sub(nanos(origin.duration_since(moment))),
    }
}

/// A worker's moment; one that cannot be is now.
pub fn instant(ns: u64) -> Instant {
    let (origin, origin_ns) = *ORIGIN;
    let moment = match ns.checked_sub(origin_ns) {
        Some(later) => origin.checked_add(Duration::from_nanos(later)),
        None => origin.checked_sub(Duration::from_nanos(origin_ns - ns)),
    };
    moment.unwrap_or_else(Instant::now)
}
