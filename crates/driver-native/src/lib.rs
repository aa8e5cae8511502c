//! The driver of models that run in this process: an engine for each instance.
//!
//! - `slots`: the loaded copies, by the numbers that the queue gives them.
//! - `execute`: one execution, from a batch to its answers.
//! - `warmup`: executions before a copy serves.
//! - `onnxruntime`: loading sessions.
//! - `native`: loading native steps.

#![forbid(unsafe_code)]

pub mod execute;
mod native;
pub mod onnxruntime;
pub mod slots;
mod warmup;

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use alipes_engine::{EngineError, InputView, OutputTensor};
use alipes_protocol::InferError;
use alipes_request::completion;
use alipes_runtime::cancellation::Cancellation;
use alipes_runtime::context::Context;
use alipes_runtime::executor::{self, Run, Step, pool};
use alipes_runtime::limiter::Limited;
use alipes_runtime::model::driver::{Driver, DriverFactory, Instance, LocalInstances, other_engine};
use alipes_runtime::model::{ModelVersion, Pending};
use alipes_scheduler::Next;
use alipes_spec::{EngineSpec, ModelSpec};
use alipes_stats::statistics::ExecutionTimes;
use parking_lot::MutexGuard;

use execute::InstanceState;
use slots::{InstanceSlot, Loaded, Slots};

/// Makes the drivers of models that ONNX Runtime executes.
pub struct OnnxruntimeFactory;

impl DriverFactory for OnnxruntimeFactory {
    fn kind(&self) -> &'static str {
        "onnxruntime"
    }

    /// Loads every instance, and those that are held and never used.
    fn make(&self, _: &Arc<Context>, spec: &ModelSpec) -> Result<Arc<dyn Driver>, InferError> {
        let EngineSpec::Onnxruntime(_) = &spec.engine else { return Err(other_engine(spec)) };
        slots(spec)
    }
}

/// Makes the drivers of native steps.
pub struct NativeFactory;

impl DriverFactory for NativeFactory {
    fn kind(&self) -> &'static str {
        "native"
    }

    fn make(&self, _: &Arc<Context>, spec: &ModelSpec) -> Result<Arc<dyn Driver>, InferError> {
        let EngineSpec::Native(_) = &spec.engine else { return Err(other_engine(spec)) };
        slots(spec)
    }
}

/// Every instance, and those that are held and never used.
fn slots(spec: &ModelSpec) -> Result<Arc<dyn Driver>, InferError> {
    let mut gpus = gpus(spec, &spec.instances);
    gpus.extend(self::gpus(spec, &spec.passive_instances));
    let mut copies = copies(spec, &gpus)?;
    let passive = copies.split_off(spec.instances.len());
    Ok(Arc::new(Slots::of(copies).beside(passive)))
}

/// The GPUs of these instances; none for one on the processor.
fn gpus(spec: &ModelSpec, instances: &[String]) -> Vec<Option<u32>> {
    instances.iter().map(|name| spec.placement(name).gpu()).collect()
}

/// The names of further instances on these GPUs: the last ones that there are.
fn names<'a>(spec: &'a ModelSpec, further: &[Option<u32>]) -> Vec<&'a str> {
    let mut left: Vec<(&String, Option<u32>)> = spec.instances.iter().zip(gpus(spec, &spec.instances)).collect();
    let name = |gpu: &Option<u32>| {
        let at = left.iter().rposition(|(_, of)| of == gpu)?;
        Some(left.remove(at).0.as_str())
    };
    further.iter().filter_map(name).collect()
}

/// Loaded copies of a model, on these GPUs.
fn copies(spec: &ModelSpec, gpus: &[Option<u32>]) -> Result<Vec<Loaded>, InferError> {
    let engines = match &spec.engine {
        EngineSpec::Onnxruntime(engine) => onnxruntime::sessions(spec, engine, gpus)?,
        EngineSpec::Native(engine) => native::steps(spec, engine, gpus.len())?,
        _ => return Err(other_engine(spec)),
    };
    Ok(engines.into_iter().zip(gpus).map(|(engine, &gpu)| Loaded { engine, gpu }).collect())
}

impl Driver for Slots {
    fn instances(&self) -> usize {
        self.count()
    }

    fn prepare(&self, model: &Arc<ModelVersion>, cancellation: &Cancellation) -> Result<(), InferError> {
        self.warm_up(model, cancellation)
    }

    fn adapt(
        &self,
        model: &Arc<ModelVersion>,
        spec: &ModelSpec,
        cancellation: &Cancellation,
    ) -> Result<(), InferError> {
        if mem::discriminant(&spec.engine) != mem::discriminant(&model.spec.engine) {
            return Err(other_engine(spec));
        }
        let change = self.change_to(&gpus(spec, &spec.instances));
        if !change.missing.is_empty() {
            self.grow(model, copies(spec, &change.missing)?, &names(spec, &change.missing), cancellation)?;
        }
        if !change.leaving.is_empty() {
            self.shrink(model, &change.leaving);
        }
        Ok(())
    }

    fn start(&self, model: &Arc<ModelVersion>, instance: usize) {
        executor::start(Run { model: Arc::clone(model), instance });
    }

    fn step(&self, model: &Arc<ModelVersion>, instance: usize) -> Step {
        self.with(instance, |slot| step(model, instance, slot)).unwrap_or_else(|| {
            // Taken out of service after the claim.
            if let Some(limited) = &model.limited {
                limited.end_use(instance, false);
            }
            model.release(instance);
            Step::Idle
        })
    }

    fn park(&self, instance: usize, until: Instant) {
        self.with(instance, |slot| slot.parker.park_until(until));
    }

    fn unpark(&self, instance: usize) {
        self.with(instance, |slot| slot.parker.unpark());
    }

    fn local_instances(&self) -> Option<&dyn LocalInstances> {
        Some(self)
    }
}

impl LocalInstances for Slots {
    fn count(&self) -> usize {
        Slots::count(self)
    }

    fn get(&self, instance: usize) -> Option<Arc<dyn Instance>> {
        Slots::get(self, instance).map(|slot| slot as Arc<dyn Instance>)
    }
}

impl Instance for InstanceSlot {
    fn sizes_tell(&self, bytes: usize) -> bool {
        self.state.lock().sizes_tell(bytes)
    }

    fn compute(
        &self,
        inputs: &[InputView<'_>],
        wanted: &[usize],
        outputs: &mut Vec<OutputTensor>,
    ) -> Result<ExecutionTimes, EngineError> {
        self.state.lock().compute(inputs, wanted, outputs)
    }
}

/// Takes the next batch of a claimed instance, if one is due, and executes it.
fn step(model: &Arc<ModelVersion>, instance: usize, slot: &Arc<InstanceSlot>) -> Step {
    if model.limited.as_ref().is_some_and(|limited| !limited.ask(model, instance)) {
        // Still claimed; the limiter starts the instance again when it may execute.
        return Step::Idle;
    }
    let mut state = slot.state.lock();
    let (next, effect) = model.with_queue(|queue, now| queue.next(now, instance, &mut state.batch));
    model.carry_out(effect);
    match next {
        Next::Take if is_for_the_pool(model, &state) => {
            let (model, slot, batch) = (Arc::clone(model), Arc::clone(slot), mem::take(&mut state.batch));
            pool::once(move || execute_left(&model, instance, &slot, batch));
            // Still claimed, for the thread that executes it.
            Step::Idle
        }
        Next::Take => execute(model, instance, state),
        Next::WaitUntil(until) => {
            return_grant(model, instance);
            Step::Wait(until)
        }
        Next::Idle => {
            return_grant(model, instance);
            Step::Idle
        }
    }
}

/// Whether this is a thread of the network, and the batch is not known to be quick.
fn is_for_the_pool(model: &ModelVersion, state: &InstanceState) -> bool {
    completion::is_network_thread() && !model.pace.runs_here(state.sizes(model).as_ref())
}

fn execute(model: &Arc<ModelVersion>, instance: usize, mut state: MutexGuard<'_, InstanceState>) -> Step {
    execute::execute(model, &mut state);
    match &model.limited {
        None => Step::Again,
        Some(limited) => {
            drop(state);
            requeue(model, instance, limited)
        }
    }
}

/// Executes a batch that was left to this thread of the pool, and drives the instance on.
fn execute_left(model: &Arc<ModelVersion>, instance: usize, slot: &InstanceSlot, batch: Vec<Pending>) {
    let mut state = slot.state.lock();
    state.batch = batch;
    if let Step::Again = execute(model, instance, state) {
        executor::start(Run { model: Arc::clone(model), instance });
    }
}

/// Ends an execution that took resources: instances that wait for them go first.
fn requeue(model: &Arc<ModelVersion>, instance: usize, limited: &Limited) -> Step {
    if model.waiting() > 0 {
        limited.take_turns(model, instance);
    } else {
        limited.end_use(instance, true);
        model.release(instance);
    }
    Step::Idle
}

/// Returns granted resources that were not used.
fn return_grant(model: &ModelVersion, instance: usize) {
    if let Some(limited) = &model.limited {
        limited.give_back(instance);
    }
}
