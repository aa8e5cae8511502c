//! Control requests over HTTP.

use std::sync::Arc;

use alipes_net::connection::RequestBody;
use alipes_protocol::codec::json::value::Value;
use alipes_protocol::{Code, InferError, Parameter, TritonRelease, limits};
use alipes_request::budget::Charge;
use alipes_service::graph::NamedConfig;
use alipes_service::offload::offload;
use alipes_service::{IndexEntry, Service};
use bytes::Bytes;
use hyper::{Response, StatusCode};
use serde::Serialize;

use super::body;
use super::response::{self, ResponseBody};

/// Whether a model is ready: 200 without a body, or Triton's refusal.
pub async fn model_ready(service: &Service, model: &str, version: &str) -> Response<ResponseBody> {
    match service.model_ready(model, version).await {
        Ok(true) => response::new(StatusCode::OK, response::PLAIN, ResponseBody::default()),
        Ok(false) => {
            let text = Bytes::from_static(br#"{"error":"Model version not ready"}"#);
            response::new(StatusCode::BAD_REQUEST, response::PLAIN, text)
        }
        Err(error) => response::error(&error),
    }
}

/// A model's configuration, as the control plane rendered it, or the graph's.
pub fn model_config(service: &Service, model: &str, version: &str) -> Response<ResponseBody> {
    match service.model_config(model, version) {
        Ok(NamedConfig::Model(model)) => response::new(StatusCode::OK, response::JSON, model.config_json()),
        Ok(NamedConfig::Graph(config)) => response::json(&config),
        Err(error) => response::error(&error),
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
pub async fn index(service: &Arc<Service>, body: RequestBody) -> Response<ResponseBody> {
    let parse = match service.config.triton_release {
        TritonRelease::V2_51 => self::ready_only,
        TritonRelease::V2_73 => self::ready_only_or_refused,
    };
    let ready_only = match read_as(service, body, parse).await {
        Ok((flag, _charge)) => flag,
        Err(error) => return response::error(&error),
    };
    if !service.has_long_index() {
        return index_document(service, ready_only);
    }
    let service = Arc::clone(service);
    let response = Box::pin(offload(move || index_document(&service, ready_only))).await;
    response.unwrap_or_else(|| response::error(&InferError::internal("the index could not be written")))
}

fn index_document(service: &Service, ready_only: bool) -> Response<ResponseBody> {
    let entries = service.repository_index(ready_only);
    response::json(&entries.iter().map(IndexDocument::from).collect::<Vec<_>>())
}

/// Loads a model.
pub async fn load(service: &Service, model: &str, body: RequestBody) -> Response<ResponseBody> {
    let outcome = async {
        let (parameters, charge) = read_as(service, body, load_parameters).await?;
        service.load_model(model, parameters, charge).await
    };
    response::empty_or(outcome.await)
}

/// A load or unload that names the repository too: Triton takes neither.
pub fn named_repository() -> Response<ResponseBody> {
    response::error(&InferError::new(Code::Unsupported, "'repository_name' specification is not supported"))
}

/// Takes a model out of service.
pub async fn unload(service: &Service, model: &str, body: RequestBody) -> Response<ResponseBody> {
    let outcome = async {
        let (dependents, _charge) = read_as(service, body, unload_dependents).await?;
        service.unload_model(model, dependents).await
    };
    response::empty_or(outcome.await)
}

/// What the body of a control request asks for, and what it is charged: read on this thread, or beside it where that
/// takes long.
///
/// # Errors
///
/// As for `read`, and what `parse` refuses.
pub async fn read_as<T: Send + 'static>(
    service: &Service,
    body: RequestBody,
    parse: fn(&[u8]) -> Result<T, InferError>,
) -> Result<(T, Charge), InferError> {
    let (text, charge) = read(service, body).await?;
    if text.len() <= limits::READ_AT_ONCE_BYTES {
        return Ok((parse(&text)?, charge));
    }
    let parsed = Box::pin(offload(move || parse(&text))).await;
    let parsed = parsed.unwrap_or_else(|| Err(InferError::internal("the request could not be read")))?;
    Ok((parsed, charge))
}

/// The body of a control request, and what it is charged.
///
/// # Errors
///
/// A body that is too large, for which there is no room, or that breaks off.
pub async fn read(service: &Service, mut body: RequestBody) -> Result<(Bytes, Charge), InferError> {
    let text = body::read_text(&mut body, service.config.http_max_input_bytes as u64, &service.budget).await;
    body::discard(body);
    text
}

/// Whether the body of an index request asks for ready models alone. No body asks for all.
fn ready_only(text: &[u8]) -> Result<bool, InferError> {
    if text.is_empty() {
        return Ok(false);
    }
    Value::parse(text)?.find("ready").map_or(Ok(false), Value::as_bool)
}

/// Whether the body of an index request asks for ready models alone; errors are in the words of releases after 2.51.
fn ready_only_or_refused(text: &[u8]) -> Result<bool, InferError> {
    let no_flag = || InferError::invalid("Invalid value for 'ready': expected a boolean");
    if text.is_empty() {
        return Ok(false);
    }
    let document = match Value::parse(text) {
        // Nothing else in this document nests, and Triton sets its depth no limit.
        Err(error) if error.code == Code::TooLarge => return Err(no_flag()),
        document => document?,
    };
    document.find("ready").map_or(Ok(false), |flag| flag.as_bool().map_err(|_| no_flag()))
}

/// The parameters of a load request: the configuration and files, each a string.
fn load_parameters(text: &[u8]) -> Result<Vec<(String, Parameter)>, InferError> {
    let Some(parameters) = parameters(text)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for (key, value) in parameters.members()? {
        let key = String::from_utf8_lossy(&key).into_owned();
        if key != "config" && !key.starts_with("file:") {
            return Err(InferError::internal("unexpected error on creating Triton parameter"));
        }
        if found.len() == limits::REQUEST_MAX_ENTRIES {
            return Err(InferError::invalid(format!(
                "the request has more than {} parameters",
                limits::REQUEST_MAX_ENTRIES
            )));
        }
        found.push((key, Parameter::String(value.as_text()?.into_owned())));
    }
    Ok(found)
}

/// Whether an unload request takes the dependents along; a value of another type is passed over, as in Triton.
fn unload_dependents(text: &[u8]) -> Result<bool, InferError> {
    let flag = parameters(text)?.and_then(|parameters| parameters.find("unload_dependents"));
    Ok(flag.and_then(|flag| flag.as_bool().ok()).unwrap_or(false))
}

fn parameters(text: &[u8]) -> Result<Option<Value<'_>>, InferError> {
    if text.is_empty() { Ok(None) } else { Ok(Value::parse(text)?.find("parameters")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_takes_a_truth_value() {
        assert_eq!(ready_only(b""), Ok(false));
        assert_eq!(ready_only(br#"{"ready":true}"#), Ok(true));
        let refused = ready_only(br#"{"ready":"yes"}"#).unwrap_err();
        assert_eq!(refused, InferError::internal("attempt to access JSON non-boolean as boolean"));
        assert_eq!(ready_only_or_refused(br#"{"ready":true}"#), Ok(true));
        let refused = ready_only_or_refused(br#"{"ready":1}"#).unwrap_err();
        assert_eq!(refused, InferError::invalid("Invalid value for 'ready': expected a boolean"));
    }

    #[test]
    fn a_load_takes_a_configuration_and_files_as_strings() {
        let parameters = load_parameters(br#"{"parameters":{"config":"{}","file:1/m":"AA=="}}"#).unwrap();
        assert_eq!(parameters[1], ("file:1/m".to_owned(), Parameter::String("AA==".to_owned())));
        assert!(load_parameters(br#"{"parameters":{"other":"x"}}"#).is_err());
        assert!(load_parameters(br#"{"parameters":{"config":1}}"#).is_err());
    }

    #[test]
    fn an_unload_passes_over_a_flag_of_another_type() {
        assert_eq!(unload_dependents(br#"{"parameters":{"unload_dependents":true}}"#), Ok(true));
        assert_eq!(unload_dependents(br#"{"parameters":{"unload_dependents":1}}"#), Ok(false));
        assert_eq!(unload_dependents(b"{}"), Ok(false));
    }
}
