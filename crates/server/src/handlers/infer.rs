//! The way of one inference request.

use std::sync::Arc;
use std::time::Instant;

use alipes_protocol::{InferError, InferRequest, InferResponse, Origin, RequestedOutput, Tensor};

use super::Service;
use super::classification::best_classes;
use crate::budget::count_answer;
use crate::executor::answer::Reply;
use crate::model::ModelVersion;
use crate::regions::Held;
use crate::spec::ModelSpec;

impl Service {
    /// Runs a request and gives the model's answer. Outputs that belong into the caller's regions are written there.
    ///
    /// Dropping the future withdraws the request: if it still waits, it never reaches the model.
    ///
    /// # Errors
    ///
    /// What the request's checks refuse, `Unavailable` while the server drains, what the model fails with, and regions
    /// that were cut off.
    pub async fn infer(
        &self,
        model: &Arc<ModelVersion>,
        request: InferRequest,
        held: Held,
    ) -> Result<InferResponse, InferError> {
        let arrived = Instant::now();
        let _inflight = self.inflight.enter()?;
        let (id, classified) = (request.id.clone(), classified(&request));
        let mut waiting = Waiting { model, answered: false };
        let outcome = match model.submit(request, arrived) {
            Ok(answer) => answer.await.unwrap_or_else(|_| Err(no_answer(model))),
            Err(error) => Err(error),
        };
        waiting.answered = true;
        if self.log.is_verbose() {
            self.log_request(model, &id, arrived.elapsed(), outcome.as_ref().err());
        }
        let Reply { mut outputs, parameters } = outcome?;
        for tensor in &mut outputs {
            classify(&model.spec, &classified, tensor).map_err(|error| error.at(Origin::Model))?;
        }
        held.settle(&mut outputs)?;
        count_answer(&self.budget, &mut outputs)?;
        Ok(InferResponse {
            id,
            model_name: Arc::clone(&model.name),
            model_version: model.spec.version,
            parameters,
            outputs,
        })
    }
}

fn no_answer(model: &ModelVersion) -> InferError {
    InferError::internal(format!("model '{}' dropped the request without an answer", model.name))
}

/// A caller who waits for a model. One that goes without its answer leaves the queue; dropped after the caller's end of
/// the request, which tells that it has gone.
struct Waiting<'a> {
    model: &'a Arc<ModelVersion>,
    answered: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.model.caller_left();
        }
    }
}

/// The outputs of which the best classes are asked for; almost always none.
pub(super) fn classified(request: &InferRequest) -> Vec<RequestedOutput> {
    request.outputs.iter().filter(|output| output.classification > 0).cloned().collect()
}

/// Puts the best classes in the place of an output of which they were asked for.
pub(super) fn classify(spec: &ModelSpec, asked: &[RequestedOutput], tensor: &mut Tensor) -> Result<(), InferError> {
    let Some(output) = asked.iter().find(|output| output.name == tensor.name) else { return Ok(()) };
    let port = spec.outputs.iter().find(|port| port.name == tensor.name.as_str());
    let labels = port.map_or(&[][..], |port| &port.labels);
    *tensor = best_classes(tensor, spec.max_batch_size > 0, output.classification as usize, labels)?;
    Ok(())
}
