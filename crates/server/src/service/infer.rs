//! The way of one inference request.

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alipes_protocol::{InferError, InferRequest, InferResponse, Origin, RequestedOutput, Tensor};

use bytes::Bytes;

use super::Service;
use super::classification::best_classes;
use crate::budget::{Budget, Charge, count_answer};
use crate::cache::{Cached, Encoded, Posted};
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

    /// The answer to a body that was posted before, as it was encoded then; booked and told like any that the cache gives.
    ///
    /// None where there is none, and where there is more to be said than this answer: to a server that stops, to a model
    /// that fails, or to too much in flight. Whoever goes the ordinary way then is told.
    pub fn repeat(&self, model: &ModelVersion, cache: &Cached, posted: &Posted) -> Option<Encoded> {
        let arrived = Instant::now();
        let found = cache.find_encoded(posted)?;
        let _inflight = self.inflight.enter().ok()?;
        let counted = counted(&self.budget, found)?;
        let spent = arrived.elapsed();
        model.statistics.cache_hit(Duration::ZERO, spent, spent);
        self.log_request(model, "", spent, None);
        Some(counted)
    }
}

/// The answer, whose binary outputs are counted until they are sent; the rest is counted as it is sent.
fn counted(budget: &Arc<Budget>, mut answer: Encoded) -> Option<Encoded> {
    if budget.is_overrun() {
        return None;
    }
    let bytes: usize = answer.tail.iter().map(Bytes::len).sum();
    let charge = Charge::of_answer(budget, bytes as u64).ok()?;
    if let Some(largest) = answer.tail.iter_mut().max_by_key(|slice| slice.len()) {
        *largest = charge.over(mem::take(largest));
    }
    Some(answer)
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
