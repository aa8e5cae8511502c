//! Models that tune themselves: what the scheduler's tuner decides is read from a version's statistics and applied to
//! its queue.
//!
//! A request of such a model costs one relaxed addition for its latency, a request of any other nothing. Everything
//! else happens once a period, on the one thread of `watch`.

mod reading;
mod watch;

use std::sync::Arc;
use std::time::{Duration, Instant};

use alipes_scheduler::Batching;
use alipes_scheduler::tuning::{Bounds, Change, Objective, Setting, Tuner};
use alipes_spec::{ModelSpec, Scheduling, TuningSpec};
use parking_lot::Mutex;

use crate::model::ModelVersion;
use reading::Reading;

/// The tuner of a version.
#[derive(Debug)]
pub struct Tuning {
    spec: TuningSpec,
    /// The version's own thread is the only one that changes it.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
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
        Some(Tuning { spec: tuning, state: Mutex::new(State { tuner, loaded: 0, last: None }) })
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

    fn period(&self) -> Duration {
        Duration::from_millis(self.spec.period_ms.max(1))
    }

    /// The setting that follows from what happened since the last call; none where it stays.
    fn decide(&self, model: &ModelVersion, now: Instant) -> Option<Setting> {
        let (loaded, changeable) = match in_process(model) {
            Some(numbers) => (numbers.len(), true),
            None => (model.driver.instances(), false),
        };
        let mut state = self.state.lock();
        let reading = Reading::of(model, now, state.tuner.setting().batch);
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

/// Begins to tune a version that is about to serve.
pub fn begin(model: &Arc<ModelVersion>) {
    if let Some(tuning) = &model.tuning {
        look_at(model);
        watch::add(model, tuning.period());
    }
}

/// Looks at the traffic of a version since the last look, and changes what it is served with.
fn look_at(model: &Arc<ModelVersion>) {
    let Some(tuning) = &model.tuning else { return };
    // While somebody changes the instances there is nothing to compare.
    let Some(_unchanged) = model.changing.try_lock() else { return };
    if let Some(setting) = tuning.decide(model, alipes_clock::now()) {
        apply(model, setting);
    }
}

fn apply(model: &Arc<ModelVersion>, setting: Setting) {
    let batching = Batching { max_queue_delay: setting.queue_delay, batch: setting.batch };
    let effect = model.with_queue(|queue, now| queue.set_batching(now, batching));
    model.carry_out(effect);
    let Some(mut numbers) = in_process(model) else { return };
    numbers.truncate(setting.instances);
    let effect = model.with_queue(|queue, now| queue.rearrange(now, &numbers));
    model.carry_out(effect);
}

/// The numbers of the loaded copies, where they are in this process: there it costs nothing to leave one idle.
fn in_process(model: &ModelVersion) -> Option<Vec<usize>> {
    let instances = model.driver.local_instances()?;
    let is_loaded = |number: &usize| instances.get(*number).is_some();
    Some((0..).filter(is_loaded).take(instances.count()).collect())
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
