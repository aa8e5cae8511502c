//! One inference request with one response.

use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alipes_protocol::{InferError, InferRequest, InferResponse};
use alipes_request::budget::{Budget, Charge, count_answer};
use alipes_request::check::explain_refusal;
use alipes_request::inflight::Admission;
use alipes_request::responder::{Answer, Reply, Responder};
use alipes_runtime::cache::{BodyKey, Cached, Encoded};
use alipes_runtime::model::ModelVersion;
use alipes_shared_memory::Held;
use bytes::Bytes;
use compact_str::CompactString;
use tokio::sync::oneshot;

use super::Service;
use super::caller_end::CallerEnd;
use super::finishing::Finishing;
use super::offload::offload;
use super::shadow::ShadowCopy;

impl Service {
    /// Runs a request and returns the model's response. Outputs for the client's regions are written there.
    ///
    /// Dropping the future cancels the request: while it is queued, it never reaches the model.
    ///
    /// # Errors
    ///
    /// A refusal by the request's checks, `Unavailable` while the server drains, a failure of the model, and truncated
    /// regions.
    pub async fn infer(
        &self,
        model: &Arc<ModelVersion>,
        mut request: InferRequest,
        held: Held,
    ) -> Result<InferResponse, InferError> {
        let Some(exchange) = self.payloads.begin(model, &mut request) else {
            return self.infer_unlogged(model, request, held).await;
        };
        let outcome = Box::pin(self.infer_unlogged(model, request, held)).await;
        exchange.end(outcome.as_ref().map(|response| (&response.outputs[..], &response.parameters[..])));
        outcome
    }

    async fn infer_unlogged(
        &self,
        model: &Arc<ModelVersion>,
        request: InferRequest,
        held: Held,
    ) -> Result<InferResponse, InferError> {
        let _inflight = self.admit(&request)?;
        let submitted = pin!(self.submit(model, request, held)).await;
        pin!(self.finish(submitted)).await
    }

    /// Counts a request, unless it is part of one that is counted.
    ///
    /// # Errors
    ///
    /// `Unavailable` once the server drains.
    pub(super) fn admit(&self, request: &InferRequest) -> Result<Option<Admission<'_>>, InferError> {
        if request.admitted { Ok(None) } else { self.inflight.enter().map(Some) }
    }

    /// Submits a request of an admitted caller to its model.
    pub(super) async fn submit<'m>(
        &self,
        model: &'m Arc<ModelVersion>,
        request: InferRequest,
        held: Held,
    ) -> SubmittedInfer<'m> {
        let arrived = alipes_clock::now();
        let copy = self.shadow_copy(model, &request, &held);
        let (id, finishing) = (request.id.clone(), Finishing::of(&request, held));
        let caller = CallerEnd::of(model);
        let answer = if model.submits_at_once(&request) {
            model.submit(request, arrived, Responder::unary)
        } else {
            Box::pin(submit_beside(model, request, arrived, Responder::unary)).await
        };
        SubmittedInfer { answer, caller, id, arrived, finishing, copy }
    }

    /// The response to a request that was submitted.
    ///
    /// # Errors
    ///
    /// As for `infer`.
    pub(super) async fn finish(&self, submitted: SubmittedInfer<'_>) -> Result<InferResponse, InferError> {
        let SubmittedInfer { answer, mut caller, id, arrived, finishing, copy } = submitted;
        let model = caller.model;
        let outcome = match answer {
            Ok(answer) => answer.await.unwrap_or_else(|_| Err(no_answer(model))),
            Err(error) => Err(explain_refusal(&model.spec, self.config.triton_release, error)),
        };
        caller.is_answered = true;
        if self.log.is_verbose() {
            self.log_request(model, &id, alipes_clock::elapsed(arrived), outcome.as_ref().err());
        }
        self.count_outcome(model, arrived, outcome.as_ref().map(|reply| &reply.outputs[..]));
        let Reply { mut outputs, parameters } = outcome?;
        if finishing.is_short(&outputs) {
            finishing.finish(&model.spec, &mut outputs)?;
        } else {
            outputs = Box::pin(Arc::new(finishing).finish_beside(model, outputs)).await?;
        }
        count_answer(&self.budget, &mut outputs)?;
        if let Some(copy) = copy {
            copy.send(&self.context, outputs.clone());
        }
        Ok(InferResponse {
            id,
            model_name: Arc::clone(&model.name),
            model_version: model.spec.version,
            parameters,
            outputs,
        })
    }

    /// The encoded response to a body that was received before; recorded and logged like any cache hit.
    ///
    /// None where there is none, and where the server stops or too much is in flight: the ordinary path then reports
    /// it.
    pub fn repeat(&self, model: &ModelVersion, cache: &Cached, body_key: &BodyKey) -> Option<Encoded> {
        let arrived = alipes_clock::now();
        let found = cache.find_encoded(body_key)?;
        let _inflight = self.inflight.enter().ok()?;
        let counted = counted(&self.budget, found)?;
        let spent = alipes_clock::elapsed(arrived);
        model.statistics.cache_hit(Duration::ZERO, spent, spent);
        self.log_request(model, "", spent, None);
        Some(counted)
    }
}

/// A request that was submitted, and what is left to do once its answer has come. Dropped before, it is cancelled.
pub(super) struct SubmittedInfer<'m> {
    // In front of the caller's end, whose drop it has to precede.
    answer: Result<oneshot::Receiver<Answer>, InferError>,
    caller: CallerEnd<&'m Arc<ModelVersion>>,
    id: CompactString,
    arrived: Instant,
    finishing: Finishing,
    copy: Option<Box<ShadowCopy>>,
}

/// The response, whose binary outputs are charged until they are sent; the rest is charged as it is sent.
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

/// Submits a request on another thread; `respond` is called there.
///
/// # Errors
///
/// As `ModelVersion::submit`.
pub(super) async fn submit_beside<R: Send + 'static>(
    model: &Arc<ModelVersion>,
    request: InferRequest,
    arrived: Instant,
    respond: impl FnOnce() -> (Responder, R) + Send + 'static,
) -> Result<R, InferError> {
    let submitting = Arc::clone(model);
    let submitted = offload(move || submitting.submit(request, arrived, respond)).await;
    submitted.unwrap_or_else(|| Err(no_answer(model)))
}

fn no_answer(model: &ModelVersion) -> InferError {
    InferError::internal(format!("model '{}' dropped the request without an answer", model.name))
}
