//! Worker processes as the driver of a model version.

use std::sync::Arc;
use std::time::Instant;

use alipes_link::RequestArena;
use alipes_protocol::{Code, InferError};
use alipes_request::chain::Holder;
use alipes_runtime::cancellation::Cancellation;
use alipes_runtime::context::Context;
use alipes_runtime::executor::{Run, Step, pool};
use alipes_runtime::model::driver::{Driver, DriverFactory, Introspection, Readiness, WorkerStatus, other_engine};
use alipes_runtime::model::{ModelVersion, Pending};
use alipes_scheduler::Scheduler;
use alipes_spec::{EngineSpec, ModelSpec};

use super::supervisor::Supervisor;
use super::worker::Worker;
use super::{Workers, place, readiness, scheduler, starts};

/// Makes the drivers of models that run in worker processes, and supervises every process of the server.
#[derive(Default)]
pub struct WorkerFactory {
    supervisor: Arc<Supervisor>,
}

impl DriverFactory for WorkerFactory {
    fn kind(&self) -> &'static str {
        "worker"
    }

    fn make(&self, context: &Arc<Context>, spec: &ModelSpec) -> Result<Arc<dyn Driver>, InferError> {
        let EngineSpec::Worker(worker) = &spec.engine else { return Err(other_engine(spec)) };
        Ok(Arc::new(Workers::new(spec, worker, &Arc::downgrade(context), &self.supervisor)?))
    }

    fn log_changed(&self) {
        self.supervisor.pass_on_verbosity();
    }

    fn stop(&self, deadline: Instant) -> bool {
        self.supervisor.stop(deadline)
    }
}

impl Driver for Workers {
    fn instances(&self) -> usize {
        self.turns()
    }

    fn scheduler(&self, spec: &ModelSpec) -> Scheduler<Pending> {
        scheduler(spec)
    }

    fn prepare(&self, model: &Arc<ModelVersion>, cancellation: &Cancellation) -> Result<(), InferError> {
        // Each worker warms up by itself, at each of its starts.
        self.start_all(model, &self.everyone(), cancellation)
    }

    fn adapt(
        &self,
        model: &Arc<ModelVersion>,
        spec: &ModelSpec,
        cancellation: &Cancellation,
    ) -> Result<(), InferError> {
        match &spec.engine {
            EngineSpec::Worker(worker) => self.change(model, spec, worker, cancellation),
            _ => Err(other_engine(spec)),
        }
    }

    /// Drives the turn on this thread, which has only to write and to wake.
    fn start(&self, model: &Arc<ModelVersion>, turn: usize) {
        if place::drive(model, self, turn).is_some() {
            pool::drive(Run { model: Arc::clone(model), instance: turn });
        }
    }

    fn step(&self, model: &Arc<ModelVersion>, turn: usize) -> Step {
        match place::drive(model, self, turn) {
            Some(until) => Step::Wait(until),
            None => Step::Idle,
        }
    }

    fn park(&self, turn: usize, until: Instant) {
        self.set().turn(turn).parker.park_until(until);
    }

    fn unpark(&self, turn: usize) {
        self.set().turn(turn).parker.unpark();
    }

    fn is_ready(&self) -> bool {
        self.is_up()
    }

    fn failing_text(&self) -> &'static str {
        if self.host.is_script() {
            "the script that its instances are attached to is gone, or serves them no more"
        } else {
            "its worker processes could not be started again"
        }
    }

    fn ask_ready(&self) -> Option<Readiness> {
        readiness::ask_all(self).map(|answer| Box::pin(answer) as Readiness)
    }

    fn holders(&self) -> Option<Vec<Holder>> {
        let set = self.set();
        // One that is down is started again, and waits for nobody.
        Some(set.list.iter().map(|worker| worker.holder(0)).collect())
    }

    fn body_memory(&self) -> Option<&Arc<RequestArena>> {
        Some(&self.arena)
    }

    fn introspect(&self) -> Introspection {
        let status = |worker: &Arc<Worker>| WorkerStatus {
            instance: worker.source.instance.clone(),
            up: worker.is_up(),
            requests: worker.state.lock().slots.held(),
            restarts: worker.restarts(),
            process: *worker.process.lock(),
        };
        Introspection::Workers(self.set().list.iter().map(status).collect())
    }
}

impl Workers {
    /// Starts workers in parallel, and waits until each has loaded the model.
    ///
    /// # Errors
    ///
    /// The first worker's reason why it could not; `Unavailable` where the load is cancelled. None of them goes on
    /// then.
    pub(super) fn start_all(
        &self,
        model: &Arc<ModelVersion>,
        workers: &[Arc<Worker>],
        cancellation: &Cancellation,
    ) -> Result<(), InferError> {
        let context = self.context.upgrade();
        let context = context.ok_or_else(|| InferError::new(Code::Unavailable, "the server does not run"))?;
        starts::start(&self.supervisor, &context.reactors, model, workers, cancellation)
    }
}
