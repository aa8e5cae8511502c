//! Periods added up until there is enough to judge, and how two such sums compare.

use std::time::Duration;

use super::observation::Observation;
use super::setting::{Objective, Setting};

/// Requests that are judged together: a hundredth of fewer would be a single request or two.
const ENOUGH_REQUESTS: u64 = 200;

/// Requests that are judged if no more come for a long time.
const FEWEST_REQUESTS: u64 = 50;

/// Late requests that are judged however few came on time: of as many as are judged otherwise, fewer are too many.
const ENOUGH_MISSED: u64 = 10;

/// How many periods are added up at most: what lies further back is other traffic.
const MOST_PERIODS: u32 = 30;

/// From one measurement to the next the traffic may change by this factor and still be the same traffic.
const SAME_TRAFFIC: f64 = 1.6;

/// A share of late requests above which only throughput, and latencies themselves, tell settings apart.
const DROWNED: f64 = 0.5;

/// How much less computing a row takes if a longer delay is worth it.
const SAVED: f64 = 0.95;

/// Periods that are being added up.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    sum: Observation,
    periods: u32,
}

impl Gathering {
    /// Adds a period; gives the sum once it is enough to judge, and begins anew then.
    pub(super) fn add(&mut self, period: &Observation) -> Option<Observation> {
        self.sum.add(period);
        self.periods += 1;
        let is_clear = self.sum.missed() >= ENOUGH_MISSED;
        let is_enough = self.sum.requests() >= ENOUGH_REQUESTS || is_clear;
        if !is_enough && self.periods < MOST_PERIODS {
            return None;
        }
        let sum = std::mem::take(self).sum;
        (is_clear || sum.requests() >= FEWEST_REQUESTS).then_some(sum)
    }
}

/// What was measured under a setting, in terms of an objective.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measurement {
    sum: Observation,
    /// What 99 of 100 requests stayed within.
    pub(super) p99: Duration,
}

/// What was measured before or after a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// The time that 99 of 100 requests were answered within; twice the objective stands for anything beyond.
    pub p99: Duration,
    /// The share of requests that took longer than the objective or were refused, from 0 to 1.
    pub missed: f64,
    /// Requests a second.
    pub requests_per_s: f64,
    /// Computing that a row took.
    pub computing_per_row: Duration,
}

/// How a measurement compares with an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Better,
    Same,
    Worse,
    /// Other traffic: it says nothing of the setting.
    OtherTraffic,
}

impl Measurement {
    pub(super) fn new(sum: Observation, objective: Objective) -> Measurement {
        Measurement { sum, p99: objective.p99_of(&sum) }
    }

    /// The share of requests that missed the objective.
    pub(super) fn missed(&self) -> f64 {
        self.sum.missed() as f64 / self.sum.requests().max(1) as f64
    }

    pub(super) fn is_met(&self) -> bool {
        self.missed() <= Objective::ALLOWED
    }

    /// Requests a second.
    pub(super) fn rate(&self) -> f64 {
        self.sum.requests() as f64 / self.sum.span.as_secs_f64().max(1e-9)
    }

    /// Rows a second.
    fn throughput(&self) -> f64 {
        self.sum.rows as f64 / self.sum.span.as_secs_f64().max(1e-9)
    }

    /// Computing that a row took.
    pub(super) fn computing_per_row(&self) -> Duration {
        self.sum.computing.div_f64(self.sum.rows.max(1) as f64)
    }

    /// What an execution took on average.
    pub(super) fn execution(&self) -> Duration {
        self.sum.computing.div_f64(self.sum.executions.max(1) as f64)
    }

    /// Rows of an average batch.
    pub(super) fn batch(&self) -> f64 {
        self.sum.rows as f64 / self.sum.executions.max(1) as f64
    }

    /// The share of executions whose batch was full.
    pub(super) fn full(&self) -> f64 {
        self.sum.full as f64 / self.sum.executions.max(1) as f64
    }

    /// Whether instances have hardly a pause, or more waits than they take at once.
    pub(super) fn is_saturated(&self, setting: &Setting) -> bool {
        let available = self.sum.span.as_secs_f64() * setting.instances as f64;
        let at_once = setting.instances * setting.batch as usize;
        self.sum.computing.as_secs_f64() > 0.85 * available || self.sum.waiting > 2 * at_once
    }

    pub(super) fn figures(&self) -> Figures {
        Figures {
            p99: self.p99,
            missed: self.missed(),
            requests_per_s: self.rate(),
            computing_per_row: self.computing_per_row(),
        }
    }

    /// What the change brought after which this was measured.
    pub(super) fn compared_with(&self, before: &Measurement, objective: Objective) -> Verdict {
        let traffic = ratio(self.rate(), before.rate());
        let is_drowned = self.missed() > DROWNED && before.missed() > DROWNED;
        if is_drowned {
            return match verdict(ratio(before.throughput(), self.throughput()), 0.97, 1.03) {
                Verdict::Same => verdict(ratio(self.p99.as_secs_f64(), before.p99.as_secs_f64()), 0.95, 1.05),
                verdict => verdict,
            };
        }
        // Clients that wait for their answers send more once these come sooner: that is no other traffic.
        let has_helped =
            !before.is_met() && verdict(ratio(self.missed(), before.missed()), 0.8, 1.1) == Verdict::Better;
        if !has_helped && !(1.0 / SAME_TRAFFIC..=SAME_TRAFFIC).contains(&traffic) {
            return Verdict::OtherTraffic;
        }
        match (before.is_met(), self.is_met()) {
            (false, true) => Verdict::Better,
            (true, false) => Verdict::Worse,
            (false, false) => verdict(ratio(self.missed(), before.missed()), 0.8, 1.1),
            (true, true) if self.p99 > objective.percent(90) && self.p99 > before.p99 => Verdict::Worse,
            (true, true) => {
                let computing = |measurement: &Measurement| measurement.computing_per_row().as_secs_f64();
                verdict(ratio(computing(self), computing(before)), SAVED, 1.0 / SAVED)
            }
        }
    }
}

/// A quantity of which less is better, as a multiple of what it was.
fn verdict(multiple: f64, better_below: f64, worse_above: f64) -> Verdict {
    match multiple {
        multiple if multiple < better_below => Verdict::Better,
        multiple if multiple > worse_above => Verdict::Worse,
        _ => Verdict::Same,
    }
}

fn ratio(one: f64, other: f64) -> f64 {
    if other > 0.0 { one / other } else { f64::INFINITY }
}
