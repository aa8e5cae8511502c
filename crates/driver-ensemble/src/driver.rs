//! An ensemble as the driver of its model version.
//!
//! The version's queue holds only the requests that go through all steps at once; all others go step by step, unqueued.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use alipes_protocol::InferError;
use alipes_runtime::cancellation::Cancellation;
use alipes_runtime::context::Context;
use alipes_runtime::executor::{self, Run, Step, pool};
use alipes_runtime::model::driver::{
    Driver, DriverFactory, Introspection, Readiness, Rejection, Unqueued, other_engine,
};
use alipes_runtime::model::{ModelVersion, Pending, policy};
use alipes_scheduler::{DynamicPolicy, Scheduler};
use alipes_spec::{EngineSpec, ModelSpec};

use super::{Ensemble, fused, run};

/// Makes the drivers of ensembles.
pub struct EnsembleFactory;

impl DriverFactory for EnsembleFactory {
    fn kind(&self) -> &'static str {
        "ensemble"
    }

    fn make(&self, context: &Arc<Context>, spec: &ModelSpec) -> Result<Arc<dyn Driver>, InferError> {
        let EngineSpec::Ensemble(steps) = &spec.engine else { return Err(other_engine(spec)) };
        Ok(Arc::new(EnsembleDriver(Ensemble::new(spec, steps, &Arc::downgrade(context))?)))
    }
}

/// The ensemble that a version is; none where it is another model.
pub fn ensemble_of(model: &ModelVersion) -> Option<&Arc<Ensemble>> {
    let driver: &dyn Any = &*model.driver;
    driver.downcast_ref::<EnsembleDriver>().map(|driver| &driver.0)
}

/// Drives the steps of an ensemble.
struct EnsembleDriver(Arc<Ensemble>);

impl Driver for EnsembleDriver {
    fn instances(&self) -> usize {
        // A queue has at least one.
        1
    }

    fn scheduler(&self, spec: &ModelSpec) -> Scheduler<Pending> {
        if spec.max_batch_size > 0 {
            return Scheduler::dynamic(DynamicPolicy { max_batch_size: spec.max_batch_size, ..Default::default() });
        }
        policy::scheduler(spec)
    }

    fn unqueued(&self, pending: &Pending, spec: &ModelSpec) -> Option<&dyn Unqueued> {
        (!self.0.fusing.takes(pending, spec)).then_some(self)
    }

    fn adapt(&self, _: &Arc<ModelVersion>, spec: &ModelSpec, _: &Cancellation) -> Result<(), InferError> {
        Err(other_engine(spec))
    }

    fn start(&self, model: &Arc<ModelVersion>, instance: usize) {
        let run = Run { model: Arc::clone(model), instance };
        if self.0.fusing.is_slow() { pool::drive(run) } else { executor::start_quick(run) }
    }

    fn step(&self, model: &Arc<ModelVersion>, instance: usize) -> Step {
        fused::drive(&self.0, model, instance)
    }

    fn park(&self, _: usize, until: Instant) {
        self.0.fusing.wait_until(until);
    }

    fn expire(&self, model: &Arc<ModelVersion>) {
        self.0.expire(model, alipes_clock::now());
    }

    fn is_ready(&self) -> bool {
        self.0.is_ready()
    }

    fn ask_ready(&self) -> Option<Readiness> {
        self.0.ask_ready()
    }

    fn keeps_state(&self, _: &ModelVersion) -> bool {
        self.0.keeps_state()
    }

    fn is_cacheable(&self) -> bool {
        // The answer depends on the state of its models, which may come and go.
        !self.0.keeps_state()
    }

    fn members(&self) -> Vec<Arc<ModelVersion>> {
        self.0.serving()
    }

    fn introspect(&self) -> Introspection {
        Introspection::Ensemble { runs: self.0.runs(), held_back: self.0.held_back() }
    }
}

impl Unqueued for EnsembleDriver {
    fn begin(&self, model: &Arc<ModelVersion>, pending: Pending) -> Result<(), Rejection> {
        run::begin(&self.0, model, pending);
        Ok(())
    }
}
