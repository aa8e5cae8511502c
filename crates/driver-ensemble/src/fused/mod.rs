//! Batches that go through all steps of an ensemble at once.
//!
//! Step by step, each request waits in each model's queue, and each model gathers and splits its batches. Where models
//! take a few microseconds, that costs more than they do. So where nothing forbids it, requests wait in a queue of the
//! ensemble's own; the thread that takes a batch from there claims an instance of each model, gathers once, runs the
//! steps one right after the other on the whole batch, and splits once. What waits in front of a model goes first:
//! where an instance is not free, the requests go step by step.
//!
//! - `plan`: whether the models allow it, and how it goes.
//! - `claims`: the instances.
//! - `batch`, `batched_request`: one batch on its way, one request of it.
//! - `refusal`: the errors of requests whose tensors do not fit a step.

mod batch;
mod batched_request;
mod claims;
mod plan;
mod refusal;

use std::iter;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use alipes_request::completion;
use alipes_runtime::executor::park::Parker;
use alipes_runtime::executor::record::withdraw_cancelled;
use alipes_runtime::executor::{self, Run, Step, pool};
use alipes_runtime::model::pace::Pace;
use alipes_runtime::model::{ModelVersion, Pending};
use alipes_scheduler::Next;
use alipes_spec::ModelSpec;
use arc_swap::{ArcSwap, Guard};
use batch::{Batch, Way};
use parking_lot::Mutex;
use plan::Plan;
pub use plan::parts_of;
use smallvec::SmallVec;

use super::driver::ensemble_of;
use super::{Ensemble, run};

/// As how many requests those of a batch count, for models that take each by itself.
const OF_A_BATCH: u32 = 16;

/// Turns of a network thread that requests wait for models to be free, for each step: one to run what waits there, and
/// one for what came to it meanwhile.
const TRIES_PER_STEP: usize = 2;

/// How long a thread of the pool waits before it looks again whether the models are free: half of what it has waited,
/// between these.
const MIN_PAUSE: Duration = Duration::from_micros(100);
const MAX_PAUSE: Duration = Duration::from_millis(1);

/// For how many executions of the model that takes its time requests wait so: one that is under way, and one of
/// requests that wait in front of the model.
const EXECUTIONS: u32 = 2;

/// The longest time that they do.
const MAX_WAIT: Duration = Duration::from_millis(50);

/// Whether an ensemble's requests go through all steps at once.
#[derive(Default)]
pub struct Fusing {
    judged: ArcSwap<Judged>,
    /// Whether they do now: all models are quick, or all but one.
    open: AtomicBool,
    /// What a model takes that takes its time, so that batches are for a thread of the pool: nanoseconds, 0 where all
    /// are quick.
    slow_ns: AtomicU64,
    /// How often in a row network threads found the models busy.
    tries: AtomicUsize,
    /// Since when threads of the pool find them so.
    busy_since: Mutex<Option<Instant>>,
    /// Where threads of the pool wait for models to be free.
    pause: Parker,
    /// What batches are made in, while none is under way.
    resting: Mutex<Vec<Batch>>,
}

/// What was found of the steps' models when they were looked at last.
#[derive(Default)]
pub struct Judged {
    of: SmallVec<[Seen; 4]>,
    plan: Option<Plan>,
    /// All models have as many instances.
    is_even: bool,
}

/// A version, which is not kept for having been looked at, and how many instances it had.
struct Seen {
    version: Weak<ModelVersion>,
    instances: usize,
}

impl Judged {
    fn is_of(&self, members: &[Arc<ModelVersion>]) -> bool {
        let same = |(seen, member): (&Seen, &Arc<ModelVersion>)| {
            std::ptr::eq(seen.version.as_ptr(), Arc::as_ptr(member)) && seen.instances == instances(member)
        };
        self.of.len() == members.len() && self.of.iter().zip(members).all(same)
    }
}

impl Fusing {
    /// Whether a request may go through all steps at once, as far as is known in advance.
    pub fn takes(&self, pending: &Pending, spec: &ModelSpec) -> bool {
        // A trace shows when each step took the request.
        self.open.load(Ordering::Relaxed)
            && pending.trace.is_none()
            && pending.checked.rows > 0
            && pending.checked.outputs.len() == spec.outputs.len()
    }

    /// Looks at the models that requests are answered with now.
    pub fn look(
        &self,
        ensemble: &Ensemble,
        model: &Arc<ModelVersion>,
        parts: &[Arc<ModelVersion>],
    ) -> Guard<Arc<Judged>> {
        let mut judged = self.judged.load();
        if !judged.is_of(parts) {
            self.judged.store(Arc::new(judge(ensemble, model, parts)));
            judged = self.judged.load();
        }
        let plan = judged.plan.as_ref().filter(|_| ensemble.steps_at_once);
        let quick = plan.is_some_and(|plan| Pace::are_quick(each(plan, parts)));
        let long = plan.filter(|_| !quick && judged.is_even).and_then(|plan| Pace::of_the_long_one(paces(plan, parts)));
        let slow_ns = long.map_or(0, |long| u64::try_from(long.as_nanos()).unwrap_or(u64::MAX));
        if self.slow_ns.load(Ordering::Relaxed) != slow_ns {
            self.slow_ns.store(slow_ns, Ordering::Relaxed);
        }
        let open = quick || long.is_some();
        if self.is_open() != open {
            self.open.store(open, Ordering::Relaxed);
        }
        judged
    }

    /// Waits for models to be free.
    pub fn wait_until(&self, moment: Instant) {
        self.pause.park_until(moment);
    }

    /// Whether one model takes its time.
    pub fn is_slow(&self) -> bool {
        self.slow_ns.load(Ordering::Relaxed) != 0
    }

    /// When requests that find an instance busy try again; none where they go step by step. If one went so at once,
    /// all behind it would do so too for as long as requests come: what is a step before them always keeps some
    /// instance. A network thread comes back once it has driven everything else, by when these are a step further;
    /// there is no use in it on a thread of the pool but where a model takes its time, whose instances it then waits
    /// for.
    fn retry_at(&self, now: Instant, steps: usize) -> Option<Instant> {
        if !completion::is_network_thread() {
            return self.retry_in_pool_at(now);
        }
        let again = self.tries.fetch_add(1, Ordering::Relaxed) < TRIES_PER_STEP * steps;
        if !again {
            self.tries.store(0, Ordering::Relaxed);
        }
        again.then_some(now)
    }

    /// When a thread of the pool that finds an instance busy tries again; none where the requests go step by step.
    fn retry_in_pool_at(&self, now: Instant) -> Option<Instant> {
        let slow = Duration::from_nanos(self.slow_ns.load(Ordering::Relaxed));
        let mut busy_since = self.busy_since.lock();
        let waited = now.duration_since(*busy_since.get_or_insert(now));
        if waited < (slow * EXECUTIONS).min(MAX_WAIT) {
            return Some(now + (waited / 2).clamp(MIN_PAUSE, MAX_PAUSE));
        }
        *busy_since = None;
        None
    }

    /// The models were free.
    fn note_free(&self) {
        self.tries.store(0, Ordering::Relaxed);
        *self.busy_since.lock() = None;
    }

    fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }
}

fn judge(ensemble: &Ensemble, model: &Arc<ModelVersion>, parts: &[Arc<ModelVersion>]) -> Judged {
    let of = parts.iter().map(|part| Seen { version: Arc::downgrade(part), instances: instances(part) });
    let plan = Plan::of(ensemble, &model.spec, parts);
    let counts = || parts.iter().filter(|part| ensemble_of(part).is_none()).map(instances);
    let (least, most) = (counts().min().unwrap_or(1).max(1), counts().max().unwrap_or(1));
    if plan.is_some() {
        // As many batches at a time as have an instance of each model.
        let turns: Vec<usize> = (0..least).collect();
        let effect = model.with_queue(|queue, now| queue.rearrange(now, &turns));
        model.carry_out(effect);
    }
    Judged { of: of.collect(), plan, is_even: least == most }
}

/// The paces of all steps, and how many executions of each there are.
fn paces<'a>(plan: &'a Plan, parts: &'a [Arc<ModelVersion>]) -> impl Iterator<Item = (&'a Pace, u32)> {
    let times = |number: usize| if number < plan.alone { OF_A_BATCH } else { 1 };
    let steps = plan.steps.iter().enumerate();
    steps.map(move |(number, step)| (&parts[step.member].pace, times(number)))
}

/// The pace of each execution.
fn each<'a>(plan: &'a Plan, parts: &'a [Arc<ModelVersion>]) -> impl Iterator<Item = &'a Pace> {
    paces(plan, parts).flat_map(|(pace, times)| iter::repeat_n(pace, times as usize))
}

fn instances(member: &Arc<ModelVersion>) -> usize {
    member.driver.local_instances().map_or(0, |instances| instances.count())
}

/// Takes the next batch of an ensemble's queue through all steps, for who has claimed a turn there.
pub fn drive(ensemble: &Arc<Ensemble>, model: &Arc<ModelVersion>, turn: usize) -> Step {
    let fusing = &ensemble.fusing;
    let mut batch = fusing.resting.lock().pop().unwrap_or_default();
    let (next, effect) = model.with_queue(|queue, now| queue.next(now, turn, &mut batch.requests));
    model.carry_out(effect);
    let step = match next {
        Next::Take => go(ensemble, model, turn, &mut batch),
        Next::WaitUntil(until) => Step::Wait(until),
        Next::Idle => Step::Idle,
    };
    fusing.resting.lock().push(batch);
    step
}

/// Takes a batch through all steps, now or soon, or each of its requests step by step.
fn go(ensemble: &Arc<Ensemble>, model: &Arc<ModelVersion>, turn: usize, batch: &mut Batch) -> Step {
    let claimed_at = alipes_clock::now();
    withdraw_cancelled(model, &mut batch.requests, claimed_at);
    if batch.requests.is_empty() {
        return Step::Again;
    }
    match fuse(ensemble, model, batch, claimed_at) {
        Outcome::Answered => ensemble.fusing.note_free(),
        Outcome::Left => {
            ensemble.fusing.note_free();
            put_back(model, batch);
            // Still claimed, for the thread that goes on.
            pool::drive(Run { model: Arc::clone(model), instance: turn });
            return Step::Idle;
        }
        Outcome::Busy => match ensemble.fusing.retry_at(alipes_clock::now(), ensemble.steps.len()) {
            Some(until) => return wait(model, batch, until),
            None => apart(ensemble, model, batch),
        },
        Outcome::Apart => apart(ensemble, model, batch),
    }
    Step::Again
}

/// Puts a batch back, for models that are free soon.
fn wait(model: &Arc<ModelVersion>, batch: &mut Batch, until: Instant) -> Step {
    put_back(model, batch);
    if completion::is_network_thread() { Step::Again } else { Step::Wait(until) }
}

fn put_back(model: &Arc<ModelVersion>, batch: &mut Batch) {
    let effect = model.with_queue(|queue, now| queue.put_back(now, &mut batch.requests.drain(..)));
    model.carry_out(effect);
}

/// Sends each request of a batch on its way step by step.
fn apart(ensemble: &Arc<Ensemble>, model: &Arc<ModelVersion>, batch: &mut Batch) {
    batch.requests.drain(..).for_each(|request| run::begin(ensemble, model, request));
}

/// What became of a batch.
enum Outcome {
    /// Each of its requests has its answer.
    Answered,
    /// Some of its requests have theirs; the others are not for a thread of the network.
    Left,
    /// Nothing: an instance is not free, or requests wait in front of it.
    Busy,
    /// Nothing: its requests have to go step by step.
    Apart,
}

fn fuse(ensemble: &Ensemble, model: &Arc<ModelVersion>, batch: &mut Batch, claimed_at: Instant) -> Outcome {
    let Ok(members) = ensemble.members() else { return Outcome::Apart };
    let Some(parts) = parts_of(&members) else { return Outcome::Apart };
    let judged = ensemble.fusing.look(ensemble, model, &parts);
    let may_be_here = !(ensemble.fusing.is_slow() && completion::is_network_thread());
    let is_open = ensemble.fusing.is_open() && may_be_here;
    let Some(plan) = judged.plan.as_ref().filter(|_| is_open) else { return Outcome::Apart };
    let Some(claims) = claims::all(&parts, &plan.models) else { return Outcome::Busy };
    batch.go(&Way { model, plan, parts: &parts, claims: &claims, claimed_at });
    // The instances are free before the answers leave: a client that is answered may need them for its next request.
    drop(claims);
    executor::collect(|| batch.send());
    if batch.requests.is_empty() { Outcome::Answered } else { Outcome::Left }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_of_the_pool_waits_for_two_executions_of_the_model_that_takes_its_time() {
        let (fusing, begin) = (Fusing::default(), alipes_clock::now());
        assert_eq!(fusing.retry_in_pool_at(begin), None, "all models are quick");
        fusing.slow_ns.store(10_000_000, Ordering::Relaxed);
        let after_ms = |waited_ms| {
            let now = begin + Duration::from_millis(waited_ms);
            fusing.retry_in_pool_at(now).map(|until| until - now)
        };
        assert_eq!(after_ms(0), Some(MIN_PAUSE));
        assert_eq!(after_ms(1), Some(Duration::from_micros(500)));
        assert_eq!(after_ms(19), Some(MAX_PAUSE));
        assert_eq!(after_ms(20), None);
        // The next batch waits anew, and one that found the models free.
        assert_eq!(after_ms(21), Some(MIN_PAUSE));
        fusing.note_free();
        assert_eq!(after_ms(41), Some(MIN_PAUSE));
    }

    #[test]
    fn nobody_waits_for_long_for_a_model_that_takes_seconds() {
        let (fusing, begin) = (Fusing::default(), alipes_clock::now());
        fusing.slow_ns.store(10_000_000_000, Ordering::Relaxed);
        assert_eq!(fusing.retry_in_pool_at(begin), Some(begin + MIN_PAUSE));
        assert_eq!(fusing.retry_in_pool_at(begin + MAX_WAIT), None);
    }
}
