//! The tuner of a version: what it decides from one reading to the next. It sees readings only, not the version.

use std::time::Duration;

use alipes_scheduler::tuning::{Bounds, Change, Objective, Setting, Tuner};
use alipes_spec::{ModelSpec, Scheduling, TuningSpec};
use parking_lot::Mutex;

use super::reading::Reading;

/// The tuner of a version.
#[derive(Debug)]
pub struct Tuning {
    spec: TuningSpec,
    /// The version's own thread is the only one that changes it.
    state: Mutex<LiveTuner>,
}

#[derive(Debug)]
struct LiveTuner {
    tuner: Tuner,
    /// Instances that are loaded.
    loaded: usize,
    last: Option<Reading>,
}

/// What is tuned, for readers outside the request path.
#[derive(Debug)]
pub struct Tuned {
    /// What is wanted.
    pub objective: Objective,
    /// What may be chosen.
    pub bounds: Bounds,
    /// What is set now.
    pub setting: Setting,
    /// The last changes, oldest first.
    pub changes: Vec<Change>,
    /// Changes so far.
    pub made: u64,
}

impl Tuning {
    /// The tuner that a specification asks for, if any: only where requests of several callers form batches is there
    /// anything to tune.
    pub fn of(spec: &ModelSpec, instances: usize) -> Option<Tuning> {
        let (tuning, Scheduling::Dynamic(dynamic)) = (spec.tuning?, &spec.scheduling) else { return None };
        let bounds = bounds(&tuning, instances, false);
        let queue_delay = Duration::from_micros(dynamic.max_queue_delay_us);
        let start = Setting { queue_delay, batch: bounds.batch, instances };
        let tuner = Tuner::new(objective(&tuning), bounds, start);
        Some(Tuning { spec: tuning, state: Mutex::new(LiveTuner { tuner, loaded: 0, last: None }) })
    }

    /// Upper edges of the latencies that a model with such a specification counts.
    pub fn latency_edges(spec: &TuningSpec) -> Vec<Duration> {
        objective(spec).latency_edges().to_vec()
    }

    /// What is tuned.
    pub fn show(&self) -> Tuned {
        let state = self.state.lock();
        Tuned {
            objective: state.tuner.objective(),
            bounds: state.tuner.bounds(),
            setting: state.tuner.setting(),
            changes: state.tuner.changes().copied().collect(),
            made: state.tuner.made(),
        }
    }

    /// What is set now.
    pub(super) fn setting(&self) -> Setting {
        self.state.lock().tuner.setting()
    }

    pub(super) fn period(&self) -> Duration {
        Duration::from_millis(self.spec.period_ms.max(1))
    }

    /// The setting that follows from what happened since the last reading; none where it stays. Fewer instances than
    /// are loaded can be in service where they are changeable.
    pub(super) fn decide(&self, reading: Reading, loaded: usize, changeable: bool) -> Option<Setting> {
        let now = reading.at;
        let mut state = self.state.lock();
        let last = state.last.replace(reading);
        if loaded != state.loaded {
            state.loaded = loaded;
            state.last = None;
            state.tuner.set_bounds(bounds(&self.spec, loaded, changeable));
            return Some(state.tuner.setting());
        }
        let period = state.last.as_ref()?.since(&last?)?;
        state.tuner.observe(now, &period)
    }
}

fn objective(spec: &TuningSpec) -> Objective {
    Objective { p99: Duration::from_micros(spec.objective_p99_us.max(1)) }
}

fn bounds(spec: &TuningSpec, loaded: usize, changeable: bool) -> Bounds {
    let most = if spec.max_instances == 0 { loaded } else { spec.max_instances.min(loaded) };
    Bounds {
        queue_delay: Duration::from_micros(spec.max_queue_delay_us),
        batch: spec.max_batch_size.max(1),
        fewest_instances: if changeable { 1 } else { loaded },
        instances: if changeable { most } else { loaded },
    }
}
