//! An inference request over HTTP: from its body to its answer.

use alipes_protocol::codec::{binary, json};
use alipes_protocol::{Code, InferError, InferRequest, Origin, Tensor, limits};
use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderName, HeaderValue};
use hyper::{HeaderMap, Request, Response, StatusCode};

use super::body::{self, Body, Expected};
use super::reply::{self, Reply};
use crate::handlers::Service;

/// Length of the JSON in front of binary tensors. Source: the binary tensor extension.
const HEADER_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");

/// What this door is called in refusals.
const DOOR: &str = "HTTP end point";

/// Answers an inference request.
pub async fn infer(service: &Service, model: &str, version: &str, request: Request<Incoming>) -> Response<Reply> {
    let (head, mut body) = request.into_parts();
    let outcome = match refuse_encoding(&head.headers) {
        Some(refused) => Ok(refused),
        None => answer(service, model, version, &head.headers, &mut body).await,
    };
    body::discard(body);
    outcome.unwrap_or_else(|error| reply::infer_error(&error))
}

async fn answer(
    service: &Service,
    name: &str,
    version: &str,
    headers: &HeaderMap,
    body: &mut Incoming,
) -> Result<Response<Reply>, InferError> {
    let model = service.lookup_unary(name, version, DOOR).map_err(|error| error.at(Origin::Door))?;
    let announced = body.size_hint().exact();
    let header_length = header_length(headers, announced).map_err(|error| error.at(Origin::Door))?;
    let max_bytes = match header_length {
        Some(length) if length > 0 => limits::HTTP_MAX_BODY_BYTES,
        _ => service.config.http_max_input_bytes as u64,
    };
    let body = body::read(body, Expected { header_length, max_bytes, memory: model.body_memory() }).await?;
    let request = decode(body, header_length, name, service.config.http_max_input_bytes)?;
    // The answer's form is the request's choice; the rest of the request moves on to the model.
    let (outputs, binary_by_default) = (request.outputs.clone(), request.binary_by_default);
    let response = service.infer(&model, request).await?;
    let encoded =
        json::encode_response(&response, &outputs, binary_by_default).map_err(|error| error.at(Origin::Model))?;
    Ok(respond(encoded))
}

fn header_length(headers: &HeaderMap, announced: Option<u64>) -> Result<Option<usize>, InferError> {
    match headers.get(HEADER_LENGTH) {
        None => Ok(None),
        Some(value) => binary::header_length(value.as_bytes(), announced).map(Some),
    }
}

fn decode(
    body: Body,
    header_length: Option<usize>,
    model: &str,
    max_input_bytes: usize,
) -> Result<InferRequest, InferError> {
    match body {
        Body::Whole(body) if header_length == Some(0) || body.is_empty() => Ok(raw(body)),
        Body::Whole(body) => json::decode_request(&body, header_length, model, max_input_bytes),
        Body::Parts { json, tensors } if json.is_empty() => Ok(raw(tensors)),
        Body::Parts { json, tensors } => json::decode_parts(&json, tensors, model, max_input_bytes),
    }
}

/// A request whose body is the only input's bytes; name, datatype and shape come from the model.
fn raw(body: Bytes) -> InferRequest {
    let shape = [i64::try_from(body.len()).unwrap_or(i64::MAX)].into_iter().collect();
    let tensor = Tensor { name: "".into(), datatype: alipes_protocol::Datatype::Uint8, shape, data: body };
    InferRequest { inputs: vec![tensor], raw: true, binary_by_default: true, ..InferRequest::default() }
}

fn respond(encoded: json::EncodedResponse) -> Response<Reply> {
    let length = encoded.head.len();
    let slices = std::iter::once(Bytes::from(encoded.head)).chain(encoded.tail);
    if !encoded.binary {
        return reply::answer(StatusCode::OK, reply::JSON, Reply::of(slices));
    }
    let mut response = reply::answer(StatusCode::OK, reply::OCTETS, Reply::of(slices));
    response.headers_mut().insert(HEADER_LENGTH, HeaderValue::from(length));
    response
}

/// Compressed bodies are refused by name until they are supported.
fn refuse_encoding(headers: &HeaderMap) -> Option<Response<Reply>> {
    let encoding = headers.get(CONTENT_ENCODING)?;
    if encoding.as_bytes() == b"identity" {
        return None;
    }
    let error = InferError::new(Code::Unsupported, "Unsupported compression type").at(Origin::Door);
    let mut response = reply::infer_error(&error);
    response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    Some(response)
}
