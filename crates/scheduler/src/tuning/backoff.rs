//! Which changes have failed, and how long they are left alone.

use super::moves::{MOVES, Move};

/// Measurements for which a change is left alone after its first failure; each further one doubles them.
const FIRST_REST: u64 = 4;

/// How often they are doubled at most.
const MOST_DOUBLINGS: u32 = 6;

/// A change of the traffic by this factor makes what failed before worth another try.
const OTHER_TRAFFIC: f64 = 2.0;

/// What a tuner has learned about each move.
#[derive(Debug, Default)]
pub(super) struct Backoff([Rest; MOVES]);

#[derive(Debug, Clone, Copy, Default)]
struct Rest {
    /// The measurement from which it may be tried again.
    until: u64,
    failures: u32,
    /// Requests a second when it failed.
    rate: f64,
}

impl Backoff {
    /// Whether a move may be tried at this measurement, in traffic of so many requests a second.
    pub(super) fn allows(&self, direction: Move, measurement: u64, rate: f64) -> bool {
        let rest = &self.0[direction as usize];
        let changed = rest.failures > 0 && is_other(rate, rest.rate);
        measurement >= rest.until || changed
    }

    /// A move has not helped.
    pub(super) fn failed(&mut self, direction: Move, measurement: u64, rate: f64) {
        let rest = &mut self.0[direction as usize];
        let failures = if is_other(rate, rest.rate) { 0 } else { rest.failures };
        *rest =
            Rest { until: measurement + (FIRST_REST << failures.min(MOST_DOUBLINGS)), failures: failures + 1, rate };
    }

    /// A move has helped: it may be repeated at once, and its opposite would undo it.
    pub(super) fn helped(&mut self, direction: Move, measurement: u64, rate: f64) {
        self.0[direction as usize].until = measurement;
        self.failed(direction.opposite(), measurement, rate);
    }

    /// What was learned was learned in other times.
    pub(super) fn forget(&mut self) {
        *self = Backoff::default();
    }
}

fn is_other(rate: f64, before: f64) -> bool {
    !(before / OTHER_TRAFFIC..=before * OTHER_TRAFFIC).contains(&rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_that_failed_rests_twice_as_long_each_time() {
        let mut backoff = Backoff::default();
        let mut measurement = 0;
        for rest in [4, 8, 16, 32, 64, 128, 256, 256] {
            assert!(backoff.allows(Move::DelayUp, measurement, 100.0));
            backoff.failed(Move::DelayUp, measurement, 100.0);
            assert!(!backoff.allows(Move::DelayUp, measurement + rest - 1, 100.0));
            measurement += rest;
        }
        assert!(backoff.allows(Move::DelayDown, 0, 100.0), "the others may be tried");
    }

    #[test]
    fn other_traffic_and_success_end_a_rest() {
        let mut backoff = Backoff::default();
        (0..3).for_each(|_| backoff.failed(Move::BatchUp, 0, 100.0));
        assert!(!backoff.allows(Move::BatchUp, 5, 190.0));
        assert!(backoff.allows(Move::BatchUp, 5, 210.0) && backoff.allows(Move::BatchUp, 5, 40.0));
        backoff.failed(Move::BatchUp, 5, 210.0);
        assert!(backoff.allows(Move::BatchUp, 9, 210.0), "a first failure in this traffic");
        backoff.failed(Move::BatchUp, 9, 210.0);
        backoff.helped(Move::BatchUp, 9, 210.0);
        assert!(backoff.allows(Move::BatchUp, 9, 210.0));
        assert!(!backoff.allows(Move::BatchDown, 9, 210.0), "it would undo what has helped");
        backoff.forget();
        assert!(backoff.allows(Move::BatchDown, 9, 210.0));
    }
}
