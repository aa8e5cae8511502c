//! Copies of requests for the shadow of a model: answered behind the caller's answer, and compared with it.

use std::sync::Arc;
use std::time::Instant;

use alipes_protocol::{InferError, InferRequest, Tensor};
use alipes_request::check::has_id;
use alipes_request::responder::{Answer, Responder};
use alipes_runtime::context::Context;
use alipes_runtime::model::ModelVersion;
use alipes_runtime::traffic::CopyPermit;
use alipes_shared_memory::Held;
use alipes_stats::turn::{Task, timed};

use super::Service;
use super::infer::submit_beside;
use super::offload::offload_if;

/// Bytes of an answer that a network thread compares itself.
const COMPARED_AT_ONCE_BYTES: usize = 128 << 10;

/// A copy of a request, which shares its bytes, and the shadow that is to answer it.
pub(super) struct ShadowCopy {
    request: InferRequest,
    version: Arc<ModelVersion>,
    permit: CopyPermit,
}

impl Service {
    /// A copy of a request for the shadow of its model, where one is due.
    #[inline]
    pub(super) fn shadow_copy(
        &self,
        model: &ModelVersion,
        request: &InferRequest,
        held: &Held,
    ) -> Option<Box<ShadowCopy>> {
        if !self.context.traffic.has_shadow() {
            return None;
        }
        self.due_copy(model, request, held)
    }

    /// Boxed and by itself, since most servers have no shadow.
    fn due_copy(&self, model: &ModelVersion, request: &InferRequest, held: &Held) -> Option<Box<ShadowCopy>> {
        if !can_be_copied(model, request, held) {
            return None;
        }
        let permit = self.context.traffic.of(&model.name)?.copy(model.spec.version)?;
        let version = self.version_of(&model.name, permit.version()).filter(|version| !version.is_decoupled());
        let Some(version) = version.filter(|_| !self.budget.is_overrun()) else {
            permit.drop_copy();
            return None;
        };
        let request = InferRequest { trace: None, logged: None, ..request.clone() };
        Some(Box::new(ShadowCopy { request, version, permit }))
    }
}

/// Whether a request says all that its answer depends on: not one of a sequence, nor one whose inputs its caller may
/// change as soon as there is an answer. Classes are no outputs of the model.
fn can_be_copied(model: &ModelVersion, request: &InferRequest, held: &Held) -> bool {
    let is_whole = request.outputs.iter().all(|output| output.classification == 0 && !output.in_region);
    held.is_empty() && is_whole && !has_id(&request.sequence) && !model.is_decoupled()
}

impl ShadowCopy {
    /// Has the shadow answer, and compares its outputs with those that the caller got. Nobody waits for that.
    pub(super) fn send(self: Box<Self>, context: &Arc<Context>, outputs: Vec<Tensor>) {
        let context = Arc::clone(context);
        tokio::spawn(timed(Task::Shadow, self.compare(context, outputs)));
    }

    async fn compare(self: Box<Self>, context: Arc<Context>, callers: Vec<Tensor>) {
        let ShadowCopy { request, version, permit } = *self;
        let arrived = alipes_clock::now();
        let answer = answer(&version, request, arrived).await;
        if let Some(split) = context.traffic.of(&version.name) {
            let outcome = answer.as_ref().map(|reply| &reply.outputs[..]);
            split.count(version.spec.version, version.spec.max_batch_size > 0, alipes_clock::elapsed(arrived), outcome);
        }
        let bytes: usize = callers.iter().map(|output| output.data.len()).sum();
        let compare = move || permit.compare(&callers, answer.as_ref().ok().map(|reply| &reply.outputs[..]));
        offload_if(bytes > COMPARED_AT_ONCE_BYTES, compare).await;
    }
}

async fn answer(version: &Arc<ModelVersion>, request: InferRequest, arrived: Instant) -> Answer {
    let submitted = if version.submits_at_once(&request) {
        version.submit(request, arrived, Responder::unary)
    } else {
        submit_beside(version, request, arrived, Responder::unary).await
    };
    submitted?.await.unwrap_or_else(|_| Err(InferError::internal("the shadow dropped the request")))
}
