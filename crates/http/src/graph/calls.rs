//! The calls of one request's steps.

use std::sync::Arc;

use alipes_graph::{Destination, Failure, Reply, Services};
use alipes_request::budget::Charge;
use alipes_service::Service;
use alipes_service::offload::offload_if;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;
use parking_lot::Mutex;

use super::{GraphEndpoint, local};
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
    async fn call(&self, service: usize, body: Bytes) -> Result<Reply, Failure> {
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
        let max_bytes = self.service.config.http_max_input_bytes;
        let (reply, charge) =
            Box::pin(self.endpoint.remote.call(url, body, &self.headers, max_bytes, &self.service.budget)).await?;
        self.charges.lock().push(charge);
        Ok(reply)
    }

    async fn work<T: Send + 'static>(
        &self,
        takes_long: bool,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        offload_if(takes_long, work).await
    }

    fn percent(&self) -> u32 {
        self.endpoint.percent()
    }
}
