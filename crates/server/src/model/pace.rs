//! How long a model's executions have taken of late.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// An execution up to this long may run on a network thread. A hand-over to another thread and back costs 10 to 40 µs
/// on two cores, so at a few hundred microseconds nothing is gained any more, while the thread's other connections
/// would begin to notice.
const QUICK: Duration = Duration::from_micros(300);

/// A moving average of a model's execution times.
#[derive(Debug, Default)]
pub struct Pace {
    // Nanoseconds; 0 before the first execution. Readers may see a value that is one execution old.
    average_ns: AtomicU64,
}

impl Pace {
    /// Takes note of an execution.
    pub fn note(&self, time: Duration) {
        let now = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let before = self.average_ns.load(Ordering::Relaxed);
        let average = if before == 0 { now } else { before - before / 8 + now / 8 };
        self.average_ns.store(average.max(1), Ordering::Relaxed);
    }

    /// Whether the model may run on a network thread; false before its first execution.
    pub fn is_quick(&self) -> bool {
        let average = self.average_ns.load(Ordering::Relaxed);
        average != 0 && average <= QUICK.as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_model_is_not_quick() {
        assert!(!Pace::default().is_quick());
    }

    #[test]
    fn one_long_execution_among_many_short_ones_takes_the_model_off_the_network_thread_for_a_while() {
        let pace = Pace::default();
        pace.note(Duration::from_micros(20));
        assert!(pace.is_quick());
        pace.note(Duration::from_millis(50));
        assert!(!pace.is_quick());
        (0..60).for_each(|_| pace.note(Duration::from_micros(20)));
        assert!(pace.is_quick());
    }
}
