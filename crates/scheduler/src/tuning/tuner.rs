//! Decides which setting is tried, and whether it stays.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::backoff::Backoff;
use super::change::{Change, Outcome};
use super::moves::{Cause, Move, Situation};
use super::observation::Observation;
use super::setting::{Bounds, Objective, Setting};
use super::verdict::{Gathering, Measurement, Verdict};

/// Changes that are remembered.
const REMEMBERED: usize = 100;

/// Measurements in a row that miss the objective before something is done, unless one misses it by far.
const MISSED_IN_A_ROW: u32 = 2;

/// Measurements in a row that miss the objective before something is done, after a long time in which the objective was
/// kept: any traffic has a bad moment once in a while, after which every change seems to help.
const MISSED_IN_A_ROW_AT_LAST: u32 = 3;

/// A share of late requests that is no accident.
const MISSED_BY_FAR: f64 = 0.3;

/// Measurements in a row that keep the objective with time to spare before some of it is spent.
const MET_IN_A_ROW: u32 = 3;

/// After so many that kept the objective, missing it is the work of other traffic: what failed before may help now.
const LONG_MET: u32 = 20;

/// How much of the objective the 99th percentile may take, in hundredths, for there to be time to spare.
const SPARE_BELOW: u32 = 75;

/// By how much the share of late requests may grow in the first period of a change before it is taken back at once.
const HARMFUL: f64 = 0.05;

/// The tuner of one model.
#[derive(Debug)]
pub struct Tuner {
    objective: Objective,
    bounds: Bounds,
    setting: Setting,
    gathering: Gathering,
    backoff: Backoff,
    trial: Option<Trial>,
    changes: VecDeque<Change>,
    /// Measurements so far: the time in which the tuner counts.
    measurements: u64,
    missed_in_a_row: u32,
    met_in_a_row: u32,
    /// Changes made so far.
    made: u64,
}

/// A change that is being watched; its record is the last one.
#[derive(Debug)]
struct Trial {
    direction: Move,
    from: Setting,
    before: Measurement,
    /// Time since the change. Requests that came before it belong to neither side: they are let pass by first.
    since: Duration,
}

impl Tuner {
    /// A tuner that begins with a setting, or the nearest one within the bounds.
    pub fn new(objective: Objective, bounds: Bounds, setting: Setting) -> Tuner {
        Tuner {
            objective,
            bounds,
            setting: bounds.clamp(setting),
            gathering: Gathering::default(),
            backoff: Backoff::default(),
            trial: None,
            changes: VecDeque::new(),
            measurements: 0,
            missed_in_a_row: 0,
            met_in_a_row: 0,
            made: 0,
        }
    }

    /// What is wanted.
    pub fn objective(&self) -> Objective {
        self.objective
    }

    /// The largest values that may be chosen.
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// What is set now.
    pub fn setting(&self) -> Setting {
        self.setting
    }

    /// The last changes, oldest first.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter()
    }

    /// Changes made so far, those that were taken back among them; taking one back counts as none.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Sets other bounds, as after a reload with another number of instances; returns the setting to be applied where
    /// the present one is out of them. Where all instances were in service, all are. What is being watched is no
    /// longer.
    pub fn set_bounds(&mut self, bounds: Bounds) -> Option<Setting> {
        if bounds == self.bounds {
            return None;
        }
        let were_all = self.setting.instances == self.bounds.instances;
        let instances = if were_all { bounds.instances } else { self.setting.instances };
        self.bounds = bounds;
        self.backoff.forget();
        self.gathering = Gathering::default();
        if self.trial.take().is_some() {
            self.close_last(None, Outcome::Undecided);
        }
        self.apply(bounds.clamp(Setting { instances, ..self.setting }))
    }

    /// Takes note of a period; returns the setting to be applied if it is to be another one.
    pub fn observe(&mut self, now: Instant, period: &Observation) -> Option<Setting> {
        if let Some(trial) = &mut self.trial {
            let is_settled = trial.since > 2 * self.objective.p99;
            trial.since += period.span;
            if !is_settled {
                let early = Measurement::new(*period, self.objective);
                let is_harmful = early.missed() > trial.before.missed() + HARMFUL;
                return if is_harmful && period.requests() > 0 { self.end_trial(&early, Verdict::Worse) } else { None };
            }
        }
        let measured = Measurement::new(self.gathering.add(period)?, self.objective);
        self.measurements += 1;
        match &self.trial {
            Some(trial) => {
                let verdict = measured.compared_with(&trial.before, self.objective);
                self.end_trial(&measured, verdict)
            }
            None => self.look(now, &measured),
        }
    }

    /// Looks for a change where there is reason for one.
    fn look(&mut self, now: Instant, measured: &Measurement) -> Option<Setting> {
        if measured.is_met() {
            self.missed_in_a_row = 0;
            self.met_in_a_row += 1;
            let has_time = measured.p99 < self.objective.percent(SPARE_BELOW);
            if !has_time || self.met_in_a_row < MET_IN_A_ROW {
                return None;
            }
            let savings = self.situation(measured).savings();
            return self.try_first(now, measured, savings);
        }
        self.missed_in_a_row += 1;
        let was_long_met = self.met_in_a_row >= LONG_MET;
        let enough = if was_long_met { MISSED_IN_A_ROW_AT_LAST } else { MISSED_IN_A_ROW };
        if self.missed_in_a_row < enough && measured.missed() < MISSED_BY_FAR {
            return None;
        }
        if was_long_met {
            self.backoff.forget();
        }
        self.met_in_a_row = 0;
        let remedies = self.situation(measured).remedies();
        self.try_first(now, measured, remedies)
    }

    fn situation<'a>(&self, measured: &'a Measurement) -> Situation<'a> {
        Situation { objective: self.objective, bounds: self.bounds, setting: self.setting, measured }
    }

    /// Makes the first change that is possible and has not failed lately.
    fn try_first(&mut self, now: Instant, measured: &Measurement, found: Vec<(Move, Cause)>) -> Option<Setting> {
        let situation = self.situation(measured);
        let (direction, cause, to) = found.into_iter().find_map(|(direction, cause)| {
            let is_allowed = self.backoff.allows(direction, self.measurements, measured.rate());
            let to = situation.after(direction, cause).filter(|_| is_allowed)?;
            Some((direction, cause, to))
        })?;
        let from = self.setting;
        self.trial = Some(Trial { direction, from, before: *measured, since: Duration::ZERO });
        if self.changes.len() == REMEMBERED {
            self.changes.pop_front();
        }
        let (before, outcome) = (measured.figures(), Outcome::Watched);
        self.changes.push_back(Change { at: now, from, to, cause, before, after: None, outcome });
        self.made += 1;
        self.gathering = Gathering::default();
        self.apply(to)
    }

    /// Keeps the change that is being watched, or takes it back.
    fn end_trial(&mut self, measured: &Measurement, verdict: Verdict) -> Option<Setting> {
        let Trial { direction, from, before, .. } = self.trial.take()?;
        let outcome = match verdict {
            Verdict::Better => Outcome::Kept,
            Verdict::Same | Verdict::Worse => Outcome::Reverted,
            // A remedy after which the objective is kept is none to take back, whatever it owes to the traffic.
            Verdict::OtherTraffic if measured.is_met() && !before.is_met() => Outcome::Kept,
            Verdict::OtherTraffic => Outcome::Undecided,
        };
        self.close_last(Some(measured), outcome);
        self.gathering = Gathering::default();
        match outcome {
            Outcome::Kept => {
                self.backoff.helped(direction, self.measurements, before.rate());
                (self.missed_in_a_row, self.met_in_a_row) = (u32::from(!measured.is_met()), 0);
                None
            }
            // Clients that wait for their answers are other traffic whenever latencies change: without a rest, what
            // stays undecided would be tried for ever.
            Outcome::Reverted | Outcome::Undecided | Outcome::Watched => {
                self.backoff.failed(direction, self.measurements, before.rate());
                self.apply(from)
            }
        }
    }

    fn close_last(&mut self, measured: Option<&Measurement>, outcome: Outcome) {
        if let Some(last) = self.changes.back_mut() {
            last.after = measured.map(Measurement::figures);
            last.outcome = outcome;
        }
    }

    fn apply(&mut self, setting: Setting) -> Option<Setting> {
        let is_other = setting != self.setting;
        self.setting = setting;
        is_other.then_some(setting)
    }
}
