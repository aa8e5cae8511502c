//! A streaming model as the driver of its model version: nothing is queued.

use std::sync::Arc;

use alipes_protocol::InferError;
use alipes_request::responder::Responder;
use alipes_runtime::cancellation::Cancellation;
use alipes_runtime::context::Context;
use alipes_runtime::executor::Step;
use alipes_runtime::model::driver::{
    Driver, DriverFactory, Introspection, Rejection, SequenceStates, Unqueued, other_engine,
};
use alipes_runtime::model::{ModelVersion, Pending};
use alipes_spec::{EngineSpec, ModelSpec};

use super::Streaming;

/// Makes the drivers of streaming models.
pub struct StreamingFactory;

impl DriverFactory for StreamingFactory {
    fn kind(&self) -> &'static str {
        "streaming"
    }

    fn make(&self, context: &Arc<Context>, spec: &ModelSpec) -> Result<Arc<dyn Driver>, InferError> {
        let EngineSpec::Streaming(streaming) = &spec.engine else { return Err(other_engine(spec)) };
        Ok(Streaming::new(spec, streaming, &Arc::downgrade(context))?)
    }
}

impl Driver for Streaming {
    fn instances(&self) -> usize {
        // A queue has at least one.
        1
    }

    fn unqueued(&self, _: &Pending, _: &ModelSpec) -> Option<&dyn Unqueued> {
        Some(self)
    }

    fn adapt(&self, _: &Arc<ModelVersion>, spec: &ModelSpec, _: &Cancellation) -> Result<(), InferError> {
        match &spec.engine {
            // Slots belong to sequences, whatever the number of instances.
            EngineSpec::Streaming(_) => Ok(()),
            _ => Err(other_engine(spec)),
        }
    }

    fn start(&self, _: &Arc<ModelVersion>, _: usize) {}

    fn step(&self, model: &Arc<ModelVersion>, _: usize) -> Step {
        self.help(model)
    }

    fn keeps_state(&self, _: &ModelVersion) -> bool {
        true
    }

    fn waiting(&self) -> Option<usize> {
        Some(self.sequences.lock().streams.waiting())
    }

    fn sequence_states(&self) -> Option<&dyn SequenceStates> {
        Some(self)
    }

    fn introspect(&self) -> Introspection {
        Introspection::Streaming
    }
}

impl Unqueued for Streaming {
    fn begin(&self, model: &Arc<ModelVersion>, pending: Pending) -> Result<(), Rejection> {
        Streaming::begin(self, model, pending).map_err(|error| (error, Responder::nobody()))
    }
}
