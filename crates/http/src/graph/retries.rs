//! How often calls that reached nobody are tried again.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Most attempts at one call whose server cannot be reached.
const MAX_ATTEMPTS: u32 = 3;

/// Wait before the second attempt; before the third it is four times as long.
const FIRST_DELAY: Duration = Duration::from_millis(25);

/// Attempts after the first that all calls may have at once; ten answers earn one more, so that a server that is down
/// is not called three times as often.
const BUDGET: u32 = 10;

/// What one answer earns, where an attempt costs `COST`.
const EARNED: u32 = 1;
const COST: u32 = 10;

/// A budget of further attempts, which answers fill.
#[derive(Debug)]
pub struct Retries(AtomicU32);

impl Default for Retries {
    fn default() -> Retries {
        Retries(AtomicU32::new(BUDGET * COST))
    }
}

impl Retries {
    /// How long to wait before the attempt behind so many; none where there is to be no other.
    pub fn delay(&self, attempts: u32) -> Option<Duration> {
        if attempts >= MAX_ATTEMPTS {
            return None;
        }
        let paid = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(COST));
        paid.ok().map(|_| FIRST_DELAY * 4_u32.pow(attempts.saturating_sub(1)))
    }

    /// A call was answered.
    pub fn answered(&self) {
        let most = BUDGET * COST;
        let earn = |left: u32| (left < most).then(|| (left + EARNED).min(most));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, earn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_bounded_for_each_call_and_for_all() {
        let retries = Retries::default();
        assert_eq!(retries.delay(1), Some(FIRST_DELAY));
        assert_eq!(retries.delay(2), Some(FIRST_DELAY * 4));
        assert_eq!(retries.delay(MAX_ATTEMPTS), None);
        let paid = (0..100).filter(|_| retries.delay(1).is_some()).count();
        assert_eq!(paid, BUDGET as usize - 2);
        (0..9).for_each(|_| retries.answered());
        assert_eq!(retries.delay(1), None);
        retries.answered();
        assert!(retries.delay(1).is_some());
    }
}
