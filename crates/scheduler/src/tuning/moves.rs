//! Which changes could help, the likeliest first.

use std::time::Duration;

use super::setting::{Bounds, Objective, Setting};
use super::verdict::Measurement;

/// Why a setting was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Too many requests are late, and waiting for company takes a large part of the objective.
    LongWaits,
    /// Too many are late, the instances have no pause, and batches are full: larger ones take less computing.
    FullBatches,
    /// Too many are late, and the instances have no pause.
    AllBusy,
    /// Too many are late, and a batch computes for a large part of the objective.
    LongExecutions,
    /// Too many are late although instances have pauses: requests come in company, and the first leaves alone.
    MissedCompany,
    /// Too many are late, and everything likelier was tried.
    Guess,
    /// The objective is kept with time to spare, in which company may come.
    TimeToSpare,
}

impl Cause {
    /// The cause as a word that machines may rely on.
    pub fn word(self) -> &'static str {
        match self {
            Cause::LongWaits => "long_waits",
            Cause::FullBatches => "full_batches",
            Cause::AllBusy => "all_busy",
            Cause::LongExecutions => "long_executions",
            Cause::MissedCompany => "missed_company",
            Cause::Guess => "guess",
            Cause::TimeToSpare => "time_to_spare",
        }
    }
}

/// A direction in which a setting is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Move {
    DelayUp,
    DelayDown,
    BatchUp,
    BatchDown,
    InstancesUp,
    InstancesDown,
}

impl Move {
    pub(super) fn opposite(self) -> Move {
        match self {
            Move::DelayUp => Move::DelayDown,
            Move::DelayDown => Move::DelayUp,
            Move::BatchUp => Move::BatchDown,
            Move::BatchDown => Move::BatchUp,
            Move::InstancesUp => Move::InstancesDown,
            Move::InstancesDown => Move::InstancesUp,
        }
    }
}

/// Number of moves.
pub(super) const MOVES: usize = 6;

/// What a tuner knows when it looks for a change.
pub(super) struct Situation<'a> {
    pub(super) objective: Objective,
    pub(super) bounds: Bounds,
    pub(super) setting: Setting,
    pub(super) measured: &'a Measurement,
}

impl Situation<'_> {
    /// What could help where too many requests are late.
    pub(super) fn remedies(&self) -> Vec<(Move, Cause)> {
        let (measured, setting) = (self.measured, &self.setting);
        let mut found = Vec::with_capacity(MOVES + 2);
        if setting.queue_delay + measured.execution() > self.objective.percent(70) {
            found.push((Move::DelayDown, Cause::LongWaits));
        }
        if measured.is_saturated(setting) {
            if measured.full() > 0.5 {
                found.push((Move::BatchUp, Cause::FullBatches));
            }
            found.push((Move::InstancesUp, Cause::AllBusy));
            found.push((Move::DelayUp, Cause::AllBusy));
        } else {
            if measured.execution() > self.objective.percent(50) {
                found.push((Move::BatchDown, Cause::LongExecutions));
            }
            found.push((Move::DelayUp, Cause::MissedCompany));
            found.push((Move::BatchUp, Cause::Guess));
            found.push((Move::InstancesUp, Cause::Guess));
        }
        let others = [Move::BatchDown, Move::InstancesDown, Move::DelayDown];
        found.extend(others.map(|other| (other, Cause::Guess)));
        found
    }

    /// What could save computing where there is time to spare.
    pub(super) fn savings(&self) -> Vec<(Move, Cause)> {
        let (measured, setting) = (self.measured, &self.setting);
        let mut found = Vec::new();
        if measured.full() > 0.5 && measured.p99 < self.objective.percent(50) {
            found.push((Move::BatchUp, Cause::TimeToSpare));
        }
        let delay = self.longer_delay(12);
        let comes = measured.rate() * delay.as_secs_f64() >= 0.5;
        let longer = delay.saturating_sub(setting.queue_delay);
        if comes
            && measured.batch() < 0.9 * f64::from(setting.batch)
            && measured.p99 + longer < self.objective.percent(85)
        {
            found.push((Move::DelayUp, Cause::TimeToSpare));
        }
        found
    }

    /// The setting after a move; none where that is the same or out of bounds.
    pub(super) fn after(&self, direction: Move, cause: Cause) -> Option<Setting> {
        let setting = self.setting;
        let moved = match direction {
            Move::DelayUp if cause == Cause::TimeToSpare => Setting { queue_delay: self.longer_delay(12), ..setting },
            Move::DelayUp => Setting { queue_delay: self.longer_delay(25), ..setting },
            Move::DelayDown => Setting { queue_delay: self.shorter_delay(), ..setting },
            Move::BatchUp => Setting { batch: setting.batch.saturating_mul(2), ..setting },
            Move::BatchDown => Setting { batch: setting.batch.div_ceil(2), ..setting },
            Move::InstancesUp => Setting { instances: setting.instances + 1, ..setting },
            Move::InstancesDown => Setting { instances: setting.instances.saturating_sub(1), ..setting },
        };
        let moved = self.bounds.clamp(moved);
        let is_hopeless =
            direction == Move::DelayUp && moved.queue_delay + self.measured.execution() > self.objective.p99;
        (moved != setting && !is_hopeless).then_some(moved)
    }

    /// Twice the delay, or some hundredths of the objective to begin with: less brings no company.
    fn longer_delay(&self, percent: u32) -> Duration {
        self.bounds.queue_delay.min((2 * self.setting.queue_delay).max(self.objective.percent(percent)))
    }

    /// Half the delay, or what executions leave of the objective if that is less; none where that is next to none.
    fn shorter_delay(&self) -> Duration {
        let left = self.objective.percent(95).saturating_sub(self.measured.execution());
        let shorter = left.min(self.setting.queue_delay / 2);
        if shorter < self.objective.percent(6) { Duration::ZERO } else { shorter }
    }
}
