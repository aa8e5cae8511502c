//! Repeated bodies for a model with a response cache: answered without being parsed. What it brings is measured in
//! `alipes-runtime`, in the module `cache::body_key`.

use std::mem;
use std::sync::Arc;

use alipes_protocol::codec::json::EncodedResponse;
use alipes_protocol::{InferError, InferRequest, Parameter};
use alipes_request::budget::{Budget, Charge};
use alipes_service::{BodyKey, Cached, Encoded, ModelVersion, Service};

use super::body::Body;

/// A body that may have been answered before.
pub(super) struct Repeated<'a> {
    cache: &'a Cached,
    body_key: BodyKey,
}

impl<'a> Repeated<'a> {
    /// The body of a request whose answer depends on nothing else. Of one that is traced, every moment of the ordinary
    /// way is noted; what headers add is not in the body.
    pub fn of(
        model: &'a ModelVersion,
        body: &Body,
        header_length: Option<usize>,
        traced: bool,
        forwarded: &Result<Vec<(String, Parameter)>, InferError>,
    ) -> Option<Repeated<'a>> {
        let is_all = !traced && matches!(forwarded, Ok(headers) if headers.is_empty());
        let cache = model.ready_answers().filter(|_| is_all)?;
        // What lies in the memory of workers is large: there is more to its answer than to read it.
        let Body::Whole(body) = body else { return None };
        Some(Repeated { cache, body_key: cache.body_key(header_length, body) })
    }

    /// Its answer, where one is kept.
    pub fn answer(&self, service: &Service, model: &ModelVersion) -> Option<Encoded> {
        service.repeat(model, self.cache, &self.body_key)
    }

    /// The body, where its answer is worth keeping: it came before, and says all that it asks for. An id is new with
    /// each request. Until then it counts beside the tensors that were read out of it.
    pub fn worth_keeping(
        mut self,
        request: &InferRequest,
        uses_regions: bool,
        budget: &Arc<Budget>,
    ) -> Option<Repeated<'a>> {
        if !request.id.is_empty() || uses_regions || !self.cache.is_repeated(&self.body_key) {
            return None;
        }
        let body = mem::take(&mut self.body_key.body);
        self.body_key.body = Charge::unchecked(budget, body.len() as u64).over(body);
        Some(self)
    }

    /// Keeps its answer as it was encoded.
    pub fn keep(self, answer: &EncodedResponse) {
        self.cache.keep_encoded(self.body_key, answer);
    }
}
