//! What a model that tunes itself has changed, and what that brought.

use std::time::Instant;

use alipes_runtime::tuning::Tuned;
use alipes_scheduler::tuning::{Change, Figures, Setting};
use serde::Serialize;

use super::span::micros;

/// What is tuned.
#[derive(Debug, Serialize)]
pub(super) struct TuningExplained {
    objective_p99_us: u64,
    setting: SettingExplained,
    /// The largest values that may be chosen.
    bounds: SettingExplained,
    /// Changes so far.
    changed: u64,
    /// The last of them, newest first.
    changes: Vec<ChangeExplained>,
}

#[derive(Debug, Serialize)]
struct SettingExplained {
    queue_delay_us: u64,
    batch: u32,
    instances: usize,
}

#[derive(Debug, Serialize)]
struct ChangeExplained {
    ago_us: u64,
    from: SettingExplained,
    to: SettingExplained,
    why: &'static str,
    outcome: &'static str,
    before: FiguresExplained,
    /// None while the change is watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<FiguresExplained>,
}

#[derive(Debug, Serialize)]
struct FiguresExplained {
    /// Twice the objective stands for anything beyond.
    p99_us: u64,
    /// The share of requests that were late or refused, from 0 to 1.
    missed: f64,
    requests_per_s: f64,
    computing_us_per_row: u64,
}

impl TuningExplained {
    pub(super) fn of(tuned: &Tuned, now: Instant) -> TuningExplained {
        let Tuned { objective, bounds, setting, changes, made } = tuned;
        TuningExplained {
            objective_p99_us: micros(objective.p99),
            setting: SettingExplained::of(*setting),
            bounds: SettingExplained {
                queue_delay_us: micros(bounds.queue_delay),
                batch: bounds.batch,
                instances: bounds.instances,
            },
            changed: *made,
            changes: changes.iter().rev().map(|change| ChangeExplained::of(change, now)).collect(),
        }
    }
}

impl ChangeExplained {
    fn of(change: &Change, now: Instant) -> ChangeExplained {
        ChangeExplained {
            ago_us: micros(now.saturating_duration_since(change.at)),
            from: SettingExplained::of(change.from),
            to: SettingExplained::of(change.to),
            why: change.cause.word(),
            outcome: change.outcome.word(),
            before: FiguresExplained::of(&change.before),
            after: change.after.as_ref().map(FiguresExplained::of),
        }
    }
}

impl SettingExplained {
    fn of(setting: Setting) -> SettingExplained {
        let Setting { queue_delay, batch, instances } = setting;
        SettingExplained { queue_delay_us: micros(queue_delay), batch, instances }
    }
}

impl FiguresExplained {
    fn of(figures: &Figures) -> FiguresExplained {
        FiguresExplained {
            p99_us: micros(figures.p99),
            missed: figures.missed,
            requests_per_s: figures.requests_per_s,
            computing_us_per_row: micros(figures.computing_per_row),
        }
    }
}
