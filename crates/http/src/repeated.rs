//! Repeated bodies for a model with a response cache: answered without being parsed. What it brings is measured in
//! `alipes-runtime`, in the module `cache::body_key`.

use std::mem;
use std::sync::Arc;

use alipes_protocol::InferRequest;
use alipes_protocol::codec::json::EncodedResponse;
use alipes_protocol::limits::CHECKED_AT_ONCE_BYTES;
use alipes_request::budget::{Budget, Charge};
use alipes_service::offload::offload;
use alipes_service::{BodyKey, Cached, Encoded, ModelVersion, Service};
use bytes::Bytes;

use super::body::Body;

/// A body that may have been answered before.
pub(super) struct Repeated {
    model: Arc<ModelVersion>,
    body_key: BodyKey,
}

/// A body, and the answer that is kept for it, if there is one.
type Known = (Repeated, Option<Encoded>);

impl Repeated {
    /// The body of a request whose answer depends on nothing else, and its answer. Of one that is traced, every moment
    /// of the ordinary way is noted; what headers add is not in the body.
    ///
    /// A long body is compared with others on another thread.
    pub async fn of(
        service: &Arc<Service>,
        model: &Arc<ModelVersion>,
        body: &Body,
        header_length: Option<usize>,
        is_all: bool,
    ) -> Option<Known> {
        // What lies in the memory of workers is large: there is more to its answer than to read it.
        let Body::Whole(body) = body else { return None };
        model.ready_answers().filter(|_| is_all)?;
        if body.len() <= CHECKED_AT_ONCE_BYTES {
            return Repeated::find(service, model, body, header_length);
        }
        let (service, model, body) = (Arc::clone(service), Arc::clone(model), body.clone());
        Box::pin(offload(move || Repeated::find(&service, &model, &body, header_length))).await?
    }

    fn find(service: &Service, model: &Arc<ModelVersion>, body: &Bytes, header_length: Option<usize>) -> Option<Known> {
        let body_key = model.ready_answers()?.body_key(header_length, body);
        let repeated = Repeated { model: Arc::clone(model), body_key };
        let answer = service.repeat(model, repeated.cache()?, &repeated.body_key);
        Some((repeated, answer))
    }

    /// None where the model has failed meanwhile.
    fn cache(&self) -> Option<&Cached> {
        self.model.ready_answers()
    }

    /// Bytes of the body.
    pub fn bytes(&self) -> usize {
        self.body_key.body.len()
    }

    /// The body, where its answer is worth keeping: it came before, and says all that it asks for. An id is new with
    /// each request. Until then it counts beside the tensors that were read out of it.
    pub fn worth_keeping(
        mut self,
        request: &InferRequest,
        uses_regions: bool,
        budget: &Arc<Budget>,
    ) -> Option<Repeated> {
        if !request.id.is_empty() || uses_regions || !self.cache()?.is_repeated(&self.body_key) {
            return None;
        }
        let body = mem::take(&mut self.body_key.body);
        self.body_key.body = Charge::unchecked(budget, body.len() as u64).over(body);
        Some(self)
    }

    /// Keeps its answer as it was encoded.
    pub fn keep(self, answer: &EncodedResponse) {
        if let Some(cache) = self.cache() {
            cache.keep_encoded(self.body_key.clone(), answer);
        }
    }
}
