//! A number of frames per time: of one connection, or of an address.

use std::time::{Duration, Instant};

use alipes_protocol::limits::{FLOOD_HABIT_SHARE, HTTP2_FRAMES_PER_SETTLEMENT};

/// A token bucket, kept as a debt: charges add to it, and time forgives it. The clock is read once in a while.
pub struct FrameBudget {
    frames_per_s: u32,
    /// Largest debt.
    burst: u32,
    debt: u32,
    /// Frames charged since the last settlement.
    unsettled: u32,
    settled_at: Instant,
}

impl FrameBudget {
    /// A budget that forgives `frames_per_s`, and may be overdrawn by what `burst_s` seconds forgive.
    pub fn new(frames_per_s: u32, burst_s: u32, now: Instant) -> FrameBudget {
        let burst = frames_per_s.saturating_mul(burst_s);
        FrameBudget { frames_per_s, burst, debt: 0, unsettled: 0, settled_at: now }
    }

    /// Charges frames; whether it is time to settle.
    #[inline]
    pub fn charge(&mut self, frames: u32) -> bool {
        self.debt = self.debt.saturating_add(frames);
        self.unsettled = self.unsettled.saturating_add(frames);
        self.unsettled >= HTTP2_FRAMES_PER_SETTLEMENT.min(self.burst)
    }

    /// Forgives what time allows. Returns the frames charged since the last settlement, less those that are a habit.
    pub fn settle(&mut self, now: Instant) -> u32 {
        let passed = now.saturating_duration_since(self.settled_at);
        let forgiven = u128::from(self.frames_per_s) * passed.as_nanos() / Duration::from_secs(1).as_nanos();
        let forgiven = u32::try_from(forgiven).unwrap_or(u32::MAX);
        // Less than a frame's time is left for the next settlement.
        if forgiven > 0 {
            self.debt = self.debt.saturating_sub(forgiven);
            self.settled_at = now;
        }
        std::mem::take(&mut self.unsettled).saturating_sub(forgiven / FLOOD_HABIT_SHARE)
    }

    /// Whether the debt is larger than it may be.
    #[inline]
    pub fn is_overdrawn(&self) -> bool {
        self.debt > self.burst
    }

    /// Frames that were charged since the last settlement.
    #[inline]
    pub fn unsettled(&self) -> u32 {
        self.unsettled
    }

    /// Frames that were charged and not forgiven yet.
    #[inline]
    pub fn debt(&self) -> u32 {
        self.debt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_are_a_habit_are_not_reported() {
        let begin = alipes_clock::now();
        let mut budget = FrameBudget::new(1000, 20, begin);
        budget.charge(64);
        assert_eq!(budget.settle(begin + Duration::from_secs(7)), 0);
        budget.charge(64);
        assert_eq!(budget.settle(begin + Duration::from_secs(8)), 54);
    }

    /// Charges one frame every `interval`; which one overdraws the budget, of so many.
    fn overdrawn_at(budget: &mut FrameBudget, interval: Duration, frames: u32) -> Option<u32> {
        let mut now = alipes_clock::now();
        (0..frames).find(|_| {
            now += interval;
            budget.charge(1) && {
                budget.settle(now);
                budget.is_overdrawn()
            }
        })
    }

    #[test]
    fn a_budget_is_overdrawn_by_a_flood_and_not_by_a_habit() {
        let budget = || FrameBudget::new(1000, 20, alipes_clock::now());
        let flood = overdrawn_at(&mut budget(), Duration::ZERO, 100_000).unwrap();
        assert!((20_000..20_000 + HTTP2_FRAMES_PER_SETTLEMENT).contains(&flood), "{flood}");
        assert_eq!(overdrawn_at(&mut budget(), Duration::from_millis(1), 1_000_000), None);
        // A little more than the rate: the burst lasts for a while.
        let fast = overdrawn_at(&mut budget(), Duration::from_micros(900), 1_000_000).unwrap();
        assert!((180_000..220_000).contains(&fast), "{fast}");
    }

    #[test]
    fn a_small_budget_is_settled_as_often_as_it_has_frames() {
        let mut budget = FrameBudget::new(1, 20, alipes_clock::now());
        assert_eq!(overdrawn_at(&mut budget, Duration::ZERO, 100), Some(39));
    }

    #[test]
    fn time_forgives_debts_and_no_more() {
        let begin = alipes_clock::now();
        let mut budget = FrameBudget::new(1000, 20, begin);
        budget.charge(500);
        assert_eq!((budget.settle(begin + Duration::from_millis(200)), budget.debt()), (498, 300));
        assert_eq!((budget.settle(begin + Duration::from_secs(60)), budget.debt()), (0, 0));
        assert!(budget.charge(20_001) && budget.is_overdrawn());
        // A moment before the last settlement forgives nothing.
        budget.settle(begin);
        assert_eq!(budget.debt(), 20_001);
    }
}
