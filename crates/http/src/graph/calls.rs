//! The calls of one request's steps.

use std::sync::Arc;

use alipes_graph::{
    Condition, Destination, Failure, NoJson, Reply, Services, first_holding, instances_of, merged, object_text,
};
use alipes_protocol::limits::READ_AT_ONCE_BYTES;
use alipes_request::budget::Charge;
use alipes_service::Service;
use alipes_service::offload::offload_if;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;
use parking_lot::Mutex;

use super::endpoint::GraphEndpoint;
use super::local;
use super::remote::{AnswerRoom, StepCall};
use crate::caller::Caller;
use crate::response;

/// What the steps of one request are called with.
pub struct Calls<'a> {
    endpoint: &'a GraphEndpoint,
    service: &'a Arc<Service>,
    /// What every step sees of the request's headers.
    headers: HeaderMap,
    caller: Caller<'a>,
    /// What the answers of steps take, until the request is answered.
    charges: Mutex<Vec<Charge>>,
}

impl<'a> Calls<'a> {
    /// The calls for a request with these headers.
    pub fn new(
        endpoint: &'a GraphEndpoint,
        service: &'a Arc<Service>,
        headers: &HeaderMap,
        caller: Caller<'a>,
    ) -> Calls<'a> {
        let passes = |name: &str| endpoint.graph.propagation.passes(name);
        let mut passed = HeaderMap::new();
        for (name, value) in headers.iter().filter(|(name, _)| passes(name.as_str())) {
            passed.append(name.clone(), value.clone());
        }
        passed.entry(CONTENT_TYPE).or_insert(response::JSON);
        Calls { endpoint, service, headers: passed, caller, charges: Mutex::default() }
    }
}

impl Services for Calls<'_> {
    type Body = Bytes;

    async fn call(&self, service: usize, body: Bytes) -> Result<Reply<Bytes>, Failure> {
        let path = &self.endpoint.local_paths[service];
        if let Some(route) = path.route(self.service, &body).await {
            // Boxed: models' futures are large, and most steps of a graph wait for others.
            return Box::pin(local::call(self.service, route, path, body, self.headers.clone(), self.caller)).await;
        }
        let destination = &self.endpoint.graph.services()[service];
        let url = match destination {
            Destination::Url(url) => url,
            Destination::Model(model) => {
                return Err(Failure::new(format!("model '{model}' is not served here: load it, or give its URL")));
            }
        };
        let room = AnswerRoom { max_bytes: self.service.config.http_max_input_bytes, budget: &self.service.budget };
        let call = StepCall { url, body, headers: &self.headers, room };
        let (reply, charge) = Box::pin(self.endpoint.remote.call(call)).await?;
        self.charges.lock().push(charge);
        Ok(reply)
    }

    async fn first(&self, conditions: Vec<Option<Condition>>, body: &Bytes) -> Result<Option<usize>, NoJson> {
        let body = body.clone();
        let found = offload_if(is_long(&body), move || first_holding(&conditions, &body)).await;
        found.unwrap_or(Err(NoJson))
    }

    async fn instances(&self, body: Bytes) -> Bytes {
        let sent = body.clone();
        let mapped = offload_if(is_long(&body), move || instances_of(&sent)).await;
        mapped.flatten().map_or(body, Bytes::from)
    }

    async fn part(&self, body: Bytes) -> Result<Bytes, Failure> {
        let written = offload_if(is_long(&body), move || object_text(&body)).await;
        let written = written.ok_or_else(|| Failure::new("the answer could not be read"))?;
        written.map(Bytes::from).map_err(Failure::new)
    }

    fn merge(&self, parts: Vec<(&str, Bytes)>) -> Result<Bytes, Failure> {
        Ok(merged(parts))
    }

    fn percent(&self) -> u32 {
        self.endpoint.percent()
    }
}

/// Whether reading a body takes longer than a network thread may be held.
fn is_long(body: &Bytes) -> bool {
    body.len() > READ_AT_ONCE_BYTES
}
