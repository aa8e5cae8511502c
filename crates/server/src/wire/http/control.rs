//! Control requests over HTTP.

use alipes_protocol::{InferError, Parameter};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Response, StatusCode};
use serde::Serialize;

use super::body;
use super::reply::{self, Reply};
use crate::handlers::Service;
use crate::registry::IndexEntry;

/// Whether a model is ready: 200 without a body, or Triton 2.51's refusal.
pub fn model_ready(service: &Service, model: &str, version: &str) -> Response<Reply> {
    match service.model_ready(model, version) {
        Ok(true) => reply::answer(StatusCode::OK, reply::PLAIN, Reply::default()),
        Ok(false) => {
            let text = Bytes::from_static(br#"{"error":"Model version not ready"}"#);
            reply::answer(StatusCode::BAD_REQUEST, reply::PLAIN, text)
        }
        Err(error) => reply::error(&error),
    }
}

/// A model's configuration, as the control plane rendered it.
pub fn model_config(service: &Service, model: &str, version: &str) -> Response<Reply> {
    match service.lookup(model, version) {
        Ok(model) => reply::answer(StatusCode::OK, reply::JSON, Bytes::copy_from_slice(model.config_json().as_bytes())),
        Err(error) => reply::error(&error),
    }
}

#[derive(Serialize)]
struct IndexDocument<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    state: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
}

impl<'a> From<&'a IndexEntry> for IndexDocument<'a> {
    fn from(entry: &'a IndexEntry) -> Self {
        IndexDocument { name: &entry.name, version: &entry.version, state: &entry.state, reason: &entry.reason }
    }
}

/// The repository index.
pub async fn index(service: &Service, body: Incoming) -> Response<Reply> {
    let ready_only = match read(service, body).await.and_then(|text| read_flag(&text, "ready")) {
        Ok(flag) => flag.unwrap_or(false),
        Err(error) => return reply::error(&error),
    };
    let entries = service.repository_index(ready_only);
    reply::json(&entries.iter().map(IndexDocument::from).collect::<Vec<_>>())
}

/// Loads a model.
pub async fn load(service: &Service, model: &str, body: Incoming) -> Response<Reply> {
    let outcome = async {
        let parameters = load_parameters(&read(service, body).await?)?;
        service.load_model(model, parameters).await
    };
    reply::empty_or(outcome.await)
}

/// Takes a model out of service.
pub async fn unload(service: &Service, model: &str, body: Incoming) -> Response<Reply> {
    let outcome = async {
        let dependents = unload_dependents(&read(service, body).await?)?;
        service.unload_model(model, dependents).await
    };
    reply::empty_or(outcome.await)
}

async fn read(service: &Service, body: Incoming) -> Result<Bytes, InferError> {
    body::read(body, 0, service.config.http_max_input_bytes as u64).await
}
fn read_flag(_text: &[u8], _key: &str) -> Result<Option<bool>, InferError> { Ok(None) }
fn load_parameters(_text: &[u8]) -> Result<Vec<(String, Parameter)>, InferError> { Ok(Vec::new()) }
fn unload_dependents(_text: &[u8]) -> Result<bool, InferError> { Ok(false) }
