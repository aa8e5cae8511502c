//! What executes a model version's requests, behind one object-safe trait.
//!
//! The model version owns the queue, the limits and the statistics; its driver owns instances, worker processes, the
//! steps of an ensemble or the states of sequences. A request costs one or two virtual calls, a batch a few more;
//! nothing is dispatched per row or per tensor.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use alipes_engine::{EngineError, InputView, OutputTensor};
use alipes_link::RequestArena;
use alipes_protocol::{CorrelationId, InferError};
use alipes_request::chain::Holder;
use alipes_request::responder::Responder;
use alipes_scheduler::Scheduler;
use alipes_spec::ModelSpec;
use alipes_stats::statistics::ExecutionTimes;
use bytes::Bytes;

use super::{ModelVersion, Pending, policy};
use crate::cancellation::Cancellation;
use crate::context::Context;
use crate::executor::Step;

/// The answer of models that are asked whether they are ready.
pub type Readiness = Pin<Box<dyn Future<Output = bool> + Send>>;

/// A refused request: the reason, and the responder that still owes its answer.
pub type Rejection = (InferError, Responder);

/// Executes the requests of one model version.
pub trait Driver: Any + Send + Sync {
    /// Number of instances that the model's queue starts with.
    fn instances(&self) -> usize;

    /// The scheduler of a queue whose requests do not form sequences.
    fn scheduler(&self, spec: &ModelSpec) -> Scheduler<Pending> {
        policy::scheduler(spec)
    }

    /// The entry for a request that does not go through the model's queue; none where it does.
    fn unqueued(&self, _: &Pending, _: &ModelSpec) -> Option<&dyn Unqueued> {
        None
    }

    /// Loads what is loaded after the version exists, and executes the warm-up samples.
    ///
    /// # Errors
    ///
    /// A sample fails, a worker process cannot load the model, or the load is cancelled.
    fn prepare(&self, _: &Arc<ModelVersion>, _: &Cancellation) -> Result<(), InferError> {
        Ok(())
    }

    /// Changes the instances of a serving version to those of another specification.
    ///
    /// # Errors
    ///
    /// What the engine refuses, `InvalidArgument` where the specification is for another kind of engine, or
    /// `Unavailable` where the load is cancelled. The version is unchanged then.
    fn adapt(&self, model: &Arc<ModelVersion>, spec: &ModelSpec, cancellation: &Cancellation)
    -> Result<(), InferError>;

    /// Starts an instance that the queue has claimed.
    fn start(&self, model: &Arc<ModelVersion>, instance: usize);

    /// Executes the next batch of a claimed instance, if one is due.
    fn step(&self, model: &Arc<ModelVersion>, instance: usize) -> Step;

    /// Blocks the thread that drives an instance until the deadline or the next `unpark`.
    fn park(&self, _instance: usize, _until: Instant) {}

    /// Wakes the thread that is parked for an instance.
    fn unpark(&self, _instance: usize) {}

    /// Handles the version's alarm: a queued request or a held call has reached its deadline.
    fn expire(&self, model: &Arc<ModelVersion>) {
        let effect = model.with_queue(|queue, now| queue.expire(now));
        model.carry_out(effect);
    }

    /// Whether the model can answer.
    fn is_ready(&self) -> bool {
        true
    }

    /// Why nothing executes where `ModelVersion::failing` says so, as the end of a sentence.
    fn failing_text(&self) -> &'static str {
        "its worker processes could not be started again"
    }

    /// Asks the model itself whether it is ready; none where it does not take part.
    fn ask_ready(&self) -> Option<Readiness> {
        None
    }

    /// Whether the model keeps state between the requests of a sequence, which therefore must arrive in order.
    fn keeps_state(&self, model: &ModelVersion) -> bool {
        model.sequences.is_some()
    }

    /// Whether an answer depends on its request alone, so that a cached one is valid.
    fn is_cacheable(&self) -> bool {
        true
    }

    /// Number of requests that wait in the driver instead of the queue; none where they wait in the queue.
    fn waiting(&self) -> Option<usize> {
        None
    }

    /// The memory in which large request bodies are best received.
    fn body_memory(&self) -> Option<&Arc<RequestArena>> {
        None
    }

    /// The loaded copies in this process, for fused ensembles; none where the model executes elsewhere.
    fn local_instances(&self) -> Option<&dyn LocalInstances> {
        None
    }

    /// The sequence states that the driver itself keeps.
    fn sequence_states(&self) -> Option<&dyn SequenceStates> {
        None
    }

    /// The instances that are up, where executions may call other models and wait for them; none where they do not.
    fn holders(&self) -> Option<Vec<Holder>> {
        None
    }

    /// The models that an ensemble calls now, each once.
    fn members(&self) -> Vec<Arc<ModelVersion>> {
        Vec::new()
    }

    /// The driver's part of `alipes explain` and of the metrics.
    fn introspect(&self) -> Introspection {
        Introspection::Queue
    }
}

/// Makes the drivers for one kind of engine. The composition registers one factory for each kind.
pub trait DriverFactory: Send + Sync {
    /// The kind of engine, as the specification spells it.
    fn kind(&self) -> &'static str;

    /// Makes the driver of a model version.
    ///
    /// # Errors
    ///
    /// The engine refuses the model, or its specification does not fit together.
    fn make(&self, context: &Arc<Context>, spec: &ModelSpec) -> Result<Arc<dyn Driver>, InferError>;

    /// Applies changed settings of the log to what the drivers have started.
    fn log_changed(&self) {}

    /// Stops what the drivers have started; false where the deadline came first.
    fn stop(&self, _deadline: Instant) -> bool {
        true
    }
}

/// The entry for requests that do not go through the model's queue.
pub trait Unqueued {
    /// Executes a request, or begins to; it may be answered before this returns.
    ///
    /// # Errors
    ///
    /// The request is refused.
    fn begin(&self, model: &Arc<ModelVersion>, pending: Pending) -> Result<(), Rejection>;
}

/// The loaded copies of a model in this process.
pub trait LocalInstances {
    /// Number of copies in service.
    fn count(&self) -> usize;

    /// The copy that the queue knows under this number; none where it was taken out of service.
    fn get(&self, instance: usize) -> Option<Arc<dyn Instance>>;
}

/// One loaded copy of a model in this process.
pub trait Instance: Send + Sync {
    /// Whether sizes tell how long inputs of so many bytes take. The caller must have claimed the instance.
    fn sizes_tell(&self, bytes: usize) -> bool;

    /// Executes inputs that the caller has gathered; the caller splits the outputs and answers.
    ///
    /// # Errors
    ///
    /// The engine's error.
    fn compute(
        &self,
        inputs: &[InputView<'_>],
        wanted: &[usize],
        outputs: &mut Vec<OutputTensor>,
    ) -> Result<ExecutionTimes, EngineError>;
}

/// The states of live sequences, kept by the driver itself.
pub trait SequenceStates {
    /// Number of live sequences.
    fn live(&self) -> usize;

    /// Largest number of live sequences.
    fn limit(&self) -> usize;

    /// Whether a sequence is live.
    fn knows(&self, id: &CorrelationId) -> bool;

    /// The state of a sequence as bytes.
    ///
    /// # Errors
    ///
    /// The sequence is not live, or one of its requests is being executed.
    fn checkpoint(&self, model: &ModelVersion, id: &CorrelationId) -> Result<Bytes, InferError>;

    /// Makes a sequence continue from such bytes: its next request needs no START.
    ///
    /// # Errors
    ///
    /// The bytes are no state of this model, a request of the sequence is being executed, or there is no free slot.
    fn restore(&self, model: &ModelVersion, id: CorrelationId, bytes: &[u8]) -> Result<(), InferError>;

    /// Ends a sequence.
    ///
    /// # Errors
    ///
    /// As for `checkpoint`.
    fn end(&self, model: &ModelVersion, id: &CorrelationId) -> Result<(), InferError>;
}

/// The state of a driver, for readers outside the request path.
#[derive(Debug)]
pub enum Introspection {
    /// The queue says it all.
    Queue,
    /// The queue, and worker processes behind it.
    Workers(Vec<WorkerStatus>),
    /// The steps of an ensemble.
    Ensemble {
        /// Requests in the ensemble's steps.
        runs: usize,
        /// Calls that wait for a permit of their step.
        held_back: usize,
    },
    /// Sequences whose state the driver keeps.
    Streaming,
}

/// One worker process.
#[derive(Debug)]
pub struct WorkerStatus {
    /// Name of its instance.
    pub instance: String,
    /// Whether it takes requests.
    pub up: bool,
    /// Requests that it holds.
    pub requests: usize,
    /// Number of starts after the first.
    pub restarts: u64,
    /// The process that runs it; none while there is none.
    pub process: Option<HostProcess>,
}

/// The process that an instance runs in, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostProcess {
    /// One that the server started for this instance.
    Worker(i32),
    /// The script that started the server, which may run several.
    Script(i32),
}

/// The error for a change to a specification of another kind of engine.
pub fn other_engine(spec: &ModelSpec) -> InferError {
    InferError::invalid(format!("model '{}' runs in another engine", spec.name))
}
