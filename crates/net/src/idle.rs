//! Whether clients ask for anything: the calls that are open, and when there was a call or a connection last.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Counts the open calls of all connections of clients, and knows when the last one was.
#[derive(Debug)]
pub struct IdleClock {
    begun: Instant,
    open: AtomicUsize,
    /// Nanoseconds from `begun` to the last sign of a client.
    last_ns: AtomicU64,
}

impl IdleClock {
    /// A clock that begins now, without a client.
    pub fn new(now: Instant) -> IdleClock {
        IdleClock { begun: now, open: AtomicUsize::new(0), last_ns: AtomicU64::new(0) }
    }

    /// A client has come, be it without a call.
    pub fn note(&self, now: Instant) {
        let since = now.saturating_duration_since(self.begun).as_nanos();
        self.last_ns.fetch_max(u64::try_from(since).unwrap_or(u64::MAX), Ordering::AcqRel);
    }

    /// A call begins.
    pub fn begin(&self) {
        self.open.fetch_add(1, Ordering::AcqRel);
    }

    /// A call has ended.
    pub fn end(&self, now: Instant) {
        // Before the count falls: a reader that sees no call sees when the last one ended.
        self.note(now);
        self.open.fetch_sub(1, Ordering::AcqRel);
    }

    /// For how long no client has asked for anything; nothing while a call is open.
    pub fn idle_for(&self, now: Instant) -> Duration {
        if self.open.load(Ordering::Acquire) > 0 {
            return Duration::ZERO;
        }
        let last = self.begun + Duration::from_nanos(self.last_ns.load(Ordering::Acquire));
        now.saturating_duration_since(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_counts_from_the_end_of_the_last_call() {
        let now = alipes_clock::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let clock = IdleClock::new(now);
        assert_eq!(clock.idle_for(at(3)), Duration::from_secs(3));
        clock.begin();
        clock.begin();
        clock.end(at(5));
        assert_eq!(clock.idle_for(at(9)), Duration::ZERO);
        clock.end(at(10));
        assert_eq!(clock.idle_for(at(12)), Duration::from_secs(2));
    }

    #[test]
    fn a_client_without_a_call_counts() {
        let now = alipes_clock::now();
        let clock = IdleClock::new(now);
        clock.note(now + Duration::from_secs(4));
        clock.note(now + Duration::from_secs(2));
        assert_eq!(clock.idle_for(now + Duration::from_secs(5)), Duration::from_secs(1));
    }
}
