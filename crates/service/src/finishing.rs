//! What is left to do with the outputs of a model: classes, and regions of the caller.

use std::sync::Arc;

use alipes_protocol::limits::{COPIED_AT_ONCE_BYTES, WRITTEN_AT_ONCE_BYTES};
use alipes_protocol::{InferError, InferRequest, Origin, RequestedOutput, Tensor};
use alipes_runtime::model::ModelVersion;
use alipes_shared_memory::Held;
use alipes_spec::ModelSpec;

use super::classification::best_classes;
use super::offload::offload;

/// What is left to do with the outputs of a request.
pub(super) struct Finishing {
    /// The outputs with a classification; almost always none.
    classified: Vec<RequestedOutput>,
    /// The regions that the request uses.
    held: Held,
}

impl Finishing {
    /// What a request asks for, which uses these regions.
    pub(super) fn of(request: &InferRequest, held: Held) -> Finishing {
        let classified = request.outputs.iter().filter(|output| output.classification > 0).cloned().collect();
        Finishing { classified, held }
    }

    /// Whether outputs stay as they are.
    pub(super) fn is_nothing(&self) -> bool {
        self.classified.is_empty() && self.held.is_empty()
    }

    /// Whether a network thread may do it.
    pub(super) fn is_short(&self, outputs: &[Tensor]) -> bool {
        if self.is_nothing() {
            return true;
        }
        if self.held.may_wait() {
            return false;
        }
        let bytes = |output: &Tensor| output.data.len();
        let classified = outputs.iter().filter(|output| self.classification(output).is_some()).map(bytes);
        classified.sum::<usize>() <= WRITTEN_AT_ONCE_BYTES
            && (self.held.is_empty() || outputs.iter().map(bytes).sum::<usize>() <= COPIED_AT_ONCE_BYTES)
    }

    /// # Errors
    ///
    /// What cannot be classified, or written to a region.
    pub(super) fn finish(&self, spec: &ModelSpec, outputs: &mut [Tensor]) -> Result<(), InferError> {
        for output in &mut *outputs {
            self.classify(spec, output).map_err(|error| error.at(Origin::Model))?;
        }
        self.held.settle(outputs)
    }

    /// Finishes outputs as `finish` does, on another thread.
    ///
    /// # Errors
    ///
    /// As for `finish`.
    pub(super) async fn finish_beside(
        self: Arc<Self>,
        model: &Arc<ModelVersion>,
        mut outputs: Vec<Tensor>,
    ) -> Result<Vec<Tensor>, InferError> {
        let model = Arc::clone(model);
        let finished = offload(move || self.finish(&model.spec, &mut outputs).map(|()| outputs)).await;
        finished.unwrap_or_else(|| Err(InferError::internal("the outputs could not be finished")))
    }

    fn classification(&self, output: &Tensor) -> Option<&RequestedOutput> {
        self.classified.iter().find(|classified| classified.name == output.name)
    }

    /// Replaces an output by its best classes, where the request asks for a classification.
    fn classify(&self, spec: &ModelSpec, output: &mut Tensor) -> Result<(), InferError> {
        let Some(classified) = self.classification(output) else { return Ok(()) };
        let port = spec.outputs.iter().find(|port| port.name == output.name.as_str());
        let labels = port.map_or(&[][..], |port| &port.labels);
        *output = best_classes(output, spec.max_batch_size > 0, classified.classification as usize, labels)?;
        Ok(())
    }
}
