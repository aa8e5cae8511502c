//! `ModelInfer` of a model that takes requests of the protocols as calls: it reads the message itself, and writes the
//! response's.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use alipes_protocol::codec::proto::named_model;
use alipes_protocol::limits::READ_AT_ONCE_BYTES;
use alipes_protocol::{Code, InferError, InferRequest, InferResponse, Origin, Parameter, call};
use alipes_request::budget::Charge;
use alipes_service::offload::offload;
use alipes_service::{ModelVersion, Service};
use alipes_shared_memory::Held;
use bytes::Bytes;
use http::HeaderMap;

use super::head::entry_of;

/// The name of the method.
pub(super) const METHOD: &str = "/inference.GRPCInferenceService/ModelInfer";

/// What the payload log is to have of the metadata, where the call is logged.
type Logged = Option<Arc<[(String, String)]>>;

/// The model that a message names, where it takes all requests as calls.
///
/// Messages name it in front, as every client writes them.
pub(super) fn named(service: &Service, message: &[u8], metadata: &HeaderMap) -> Option<Arc<ModelVersion>> {
    let (name, version) = named_model(message)?;
    let model = service.lookup_divided(name, version, |name| entry_of(Some(metadata), name));
    model.ok().filter(|model| model.is_whole())
}

/// The message of the response, as the model writes it.
///
/// # Errors
///
/// What the model refuses or fails with, and `Overloaded` where there is no room for the message.
pub(super) async fn infer(
    service: &Service,
    model: &Arc<ModelVersion>,
    (bytes, charge): (Bytes, Charge),
    metadata: &HeaderMap,
    (request_id, logged): (&str, Logged),
) -> Result<Bytes, InferError> {
    let element = if bytes.len() <= READ_AT_ONCE_BYTES {
        call::element(&bytes)
    } else {
        let copied = offload(move || call::element(&bytes)).await;
        copied.ok_or_else(|| InferError::internal("the request message could not be read"))?
    };
    let text = |name: &str, value: String| (name.to_owned(), Parameter::String(value));
    let headers = metadata.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let mut request = InferRequest {
        id: request_id.into(),
        inputs: vec![call::input(element)],
        parameters: vec![
            text(call::CONTENT_TYPE, call::MESSAGE.to_owned()),
            text(call::HEADERS, headers_text(headers)),
            text(call::METHOD, "POST".to_owned()),
            text(call::QUERY, String::new()),
            text(call::PATH, METHOD.to_owned()),
        ],
        call: true,
        logged,
        ..InferRequest::default()
    };
    let held = Held::default();
    charge.ride(&service.budget, &mut request, &held)?;
    let response = if model.is_decoupled() {
        Box::pin(only(service, model, request)).await?
    } else {
        pin!(service.infer(model, request, held)).await?
    };
    body(&response)
}

/// The only response of a model that may send several: a message is none of many pieces.
async fn only(
    service: &Service,
    model: &Arc<ModelVersion>,
    request: InferRequest,
) -> Result<InferResponse, InferError> {
    let mut generation = service.generate(model, request).await?;
    let none = || InferError::internal("the model did not respond to the call").at(Origin::Model);
    let response = generation.next().await.unwrap_or_else(|| Err(none()))?;
    let more = response.parameters.iter().any(|(name, value)| name == call::MORE && *value == Parameter::Bool(true));
    if more {
        let text = "the model answers in pieces, which a message of gRPC cannot hold: ask over HTTP";
        return Err(InferError::new(Code::Unsupported, text).at(Origin::Model));
    }
    generation.next().await;
    Ok(response)
}

/// Metadata as the text of a JSON object, as `call::HEADERS` has it: several values of one name are joined, and bytes
/// beyond ASCII are read as Latin-1.
fn headers_text<'a>(entries: impl Iterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut object: BTreeMap<&str, String> = BTreeMap::new();
    for (name, value) in entries {
        let text = value.iter().map(|&byte| char::from(byte));
        match object.get_mut(name) {
            Some(joined) => joined.extend(", ".chars().chain(text)),
            None => drop(object.insert(name, text.collect())),
        }
    }
    // Texts by text cannot fail to be written.
    serde_json::to_string(&object).unwrap_or_default()
}

/// The message that the model wrote.
fn body(response: &InferResponse) -> Result<Bytes, InferError> {
    let output = response.outputs.iter().find(|output| output.name == call::BODY).and_then(call::body);
    let body = output.ok_or_else(|| {
        let text = format!("the model's response to a call has no output '{}' with one element of BYTES", call::BODY);
        InferError::internal(text).at(Origin::Model)
    })?;
    let status = response.parameters.iter().find_map(|(name, value)| match value {
        Parameter::Int64(status) if name == call::STATUS => Some(*status),
        _ => None,
    });
    match status {
        None | Some(200) => Ok(body),
        Some(status) => Err(refusal(status, &body)),
    }
}

/// The error that stands for a status other than 200; the body is its text.
fn refusal(status: i64, body: &[u8]) -> InferError {
    let code = match status {
        400..=403 | 405..=499 => Code::InvalidArgument,
        404 => Code::NotFound,
        501 => Code::Unsupported,
        503 => Code::Unavailable,
        _ => Code::Internal,
    };
    InferError::new(code, String::from_utf8_lossy(body)).at(Origin::Model)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: Option<i64>, body: &[u8]) -> InferResponse {
        InferResponse {
            id: "".into(),
            model_name: "m".into(),
            model_version: 1,
            parameters: status.map(|status| (call::STATUS.to_owned(), Parameter::Int64(status))).into_iter().collect(),
            outputs: vec![call::input(call::element(body))],
        }
    }

    #[test]
    fn metadata_is_one_text_for_each_name() {
        let entries = [("b", &b"1"[..]), ("a", b"\"x\""), ("b", b"caf\xe9")];
        assert_eq!(headers_text(entries.into_iter()), r#"{"a":"\"x\"","b":"1, café"}"#);
        assert_eq!(headers_text(std::iter::empty()), "{}");
    }

    #[test]
    fn a_body_of_status_200_is_the_message() {
        for status in [None, Some(200)] {
            assert_eq!(body(&response(status, b"\x0a\x01m")).unwrap(), &b"\x0a\x01m"[..]);
        }
        assert!(body(&InferResponse { outputs: vec![], ..response(None, b"") }).is_err());
    }

    #[test]
    fn another_status_is_an_error_with_the_body_as_its_text() {
        for (status, code) in [
            (400, Code::InvalidArgument),
            (404, Code::NotFound),
            (501, Code::Unsupported),
            (503, Code::Unavailable),
            (500, Code::Internal),
            (200_000, Code::Internal),
        ] {
            let error = body(&response(Some(status), "nö".as_bytes())).unwrap_err();
            assert_eq!((error.code, &*error.message), (code, "nö"));
        }
    }
}
