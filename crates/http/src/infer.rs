//! An inference request over HTTP: from its body to its response.

use std::pin::pin;
use std::sync::Arc;

use alipes_net::connection::{RequestBody, Spelling};
use alipes_protocol::codec::json::DecodeOptions;
use alipes_protocol::codec::{binary, json};
use alipes_protocol::trace::{Moment, Trace};
use alipes_protocol::{
    Code, InferError, InferRequest, InferResponse, Origin, Parameter, RequestedOutput, Tensor, TritonRelease, limits,
};
use alipes_request::budget::{Budget, Charge, GrowingCharge};
use alipes_service::offload::offload;
use alipes_service::{Encoded, Service};
use alipes_shared_memory::{Finder, Held, Regions};
use alipes_stats::clock::now_ns;
use bytes::Bytes;
use hyper::body::Body as _;
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderName, HeaderValue};
use hyper::{HeaderMap, Request, Response, StatusCode};

use super::body::{self, Body, Expected, Received};
use super::caller::Caller;
use super::compression::{self, Coding};
use super::repeated::Repeated;
use super::response::{self, ResponseBody};

/// Length of the JSON in front of binary tensors. Source: the binary tensor extension.
const HEADER_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");

/// The name of the endpoint in refusals.
const ENDPOINT: &str = "HTTP end point";

/// Answers an inference request.
pub async fn infer(
    service: &Arc<Service>,
    model: &str,
    version: &str,
    request: Box<Request<RequestBody>>,
    caller: Caller<'_>,
) -> Response<ResponseBody> {
    let (head, mut body) = request.into_parts();
    let trace = service.trace(model, &head.headers);
    let forwarded = forwarded(service, &head.headers, caller.peer.spelling);
    let mut context =
        RequestContext { model, version, headers: &head.headers, caller, trace: trace.as_ref(), submitted: false };
    let outcome = pin!(answer(service, &mut context, &mut body, forwarded)).await;
    let stays = body::discard(body);
    if let (Err(error), false) = (&outcome, context.submitted) {
        service.log_refusal(model, version, caller.request_id(), error);
    }
    let mut response = outcome.unwrap_or_else(|error| response::infer_error(&error));
    if !stays {
        response::announce_close(&mut response);
    }
    if let Some(trace) = trace {
        response.body_mut().traced(trace);
    }
    response
}

/// The part of a request that is known before its body.
struct RequestContext<'a> {
    model: &'a str,
    version: &'a str,
    headers: &'a HeaderMap,
    caller: Caller<'a>,
    trace: Option<&'a Arc<Trace>>,
    /// The request was submitted to a model, which logs its outcome.
    submitted: bool,
}

async fn answer(
    service: &Arc<Service>,
    context: &mut RequestContext<'_>,
    body: &mut RequestBody,
    forwarded: Result<Vec<(String, Parameter)>, InferError>,
) -> Result<Response<ResponseBody>, InferError> {
    let &mut RequestContext { model: name, version, headers, caller, trace, .. } = context;
    let model = service.lookup_unary(name, version, ENDPOINT, |name| header(headers, name));
    let model = model.map_err(|error| error.at(Origin::Endpoint))?;
    let Some(coding) = Coding::of_request(headers) else {
        let error = InferError::new(Code::Unsupported, "Unsupported compression type").at(Origin::Endpoint);
        service.log_refusal(name, version, caller.request_id(), &error);
        return Ok(unknown_coding(&error));
    };
    let max_input_bytes = service.config.http_max_input_bytes;
    let announced = if coding == Coding::Identity { body.size_hint().exact() } else { None };
    let release = service.config.triton_release;
    let header_length = header_length(headers, announced, release).map_err(|error| error.at(Origin::Endpoint))?;
    let max_bytes = match header_length {
        Some(length) if length > 0 && coding == Coding::Identity => limits::HTTP_MAX_BODY_BYTES,
        _ => max_input_bytes as u64,
    };
    let expected = Expected { header_length, max_bytes, memory: model.body_memory(), budget: &service.budget };
    let (body, charge) = match coding {
        Coding::Identity => pin!(body::read(body, expected)).await?,
        Coding::Gzip | Coding::Deflate => {
            let compressed = body::read_text(body, max_bytes, &service.budget).await?;
            let into = Received::new(&expected, 0);
            if release.is_later() || model.spec.inputs.len() == 1 || compression::is_begun(&compressed.0) {
                compression::expand(compressed, into, max_input_bytes).await?
            } else {
                // Recorded: Triton 2.51 takes what is not compressed for an empty body. A model of one input would run
                // on an empty tensor then, so that is refused in any release.
                into.freeze()
            }
        }
    };
    if let Some(trace) = trace {
        trace.note(Moment::HttpRecvEnd, now_ns());
    }
    let logged = service.payloads.draw(headers);
    let is_all = trace.is_none()
        && logged.is_none()
        && caller.request_id().is_empty()
        && matches!(&forwarded, Ok(headers) if headers.is_empty());
    let known = Repeated::of(service, &model, &body, header_length, is_all).await;
    let (repeated, known) = known.map_or((None, None), |(repeated, answer)| (Some(repeated), answer));
    if let Some(answer) = known {
        context.submitted = true;
        return Ok(respond(answer, Coding::of_answer(headers), &service.budget).await);
    }
    let (mut request, held, charge) = pin!(read_request(service, body, header_length, name, charge)).await?;
    charge.ride(&service.budget, &mut request, &held)?;
    caller.name(&mut request.id);
    request.admitted = caller.is_admitted;
    request.parameters.extend(forwarded?);
    request.trace = trace.cloned();
    request.logged = logged;
    let repeated = repeated.and_then(|repeated| repeated.worth_keeping(&request, !held.is_empty(), &service.budget));
    // The request chooses the form of its response; the rest of it moves on to the model.
    let (outputs, binary_by_default) = (request.outputs.clone(), request.binary_by_default);
    let model = service.home_of(model, version, &request);
    context.submitted = true;
    let response = pin!(service.infer(&model, request, held)).await?;
    let encoded = pin!(encode(response, outputs, binary_by_default, repeated)).await?;
    Ok(respond(encoded, Coding::of_answer(headers), &service.budget).await)
}

/// The response as it is sent, kept for those who repeat the request: written on this thread, or beside it where that
/// takes long.
pub(super) async fn encode(
    response: InferResponse,
    outputs: Vec<RequestedOutput>,
    binary_by_default: bool,
    repeated: Option<Repeated>,
) -> Result<Encoded, InferError> {
    let text_bytes = json::text_bytes(&response, &outputs, binary_by_default);
    let copied_bytes = repeated.as_ref().map_or(0, |repeated| repeated.bytes() + bytes_of(&response));
    let write = move || {
        let encoded = json::encode_response(&response, &outputs, binary_by_default);
        let encoded = encoded.map_err(|error| error.at(Origin::Model))?;
        drop(response);
        if let Some(repeated) = repeated {
            repeated.keep(&encoded);
        }
        Ok(encoded.into())
    };
    if text_bytes <= limits::WRITTEN_AT_ONCE_BYTES && copied_bytes <= limits::CHECKED_AT_ONCE_BYTES {
        return write();
    }
    let written = Box::pin(offload(write)).await;
    written.unwrap_or_else(|| Err(InferError::internal("the response could not be written")))
}

fn bytes_of(response: &InferResponse) -> usize {
    response.outputs.iter().map(|output| output.data.len()).sum()
}

/// The value of a header, for requests that are divided by it.
pub(super) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a [u8]> {
    headers.get(name).map(HeaderValue::as_bytes)
}

/// The headers that are forwarded to the model. Called before the body is read: the recorded spelling is dropped later.
pub(super) fn forwarded(
    service: &Service,
    headers: &HeaderMap,
    spelling: Option<&Spelling>,
) -> Result<Vec<(String, Parameter)>, InferError> {
    let Some(forwarding) = &service.config.http_header_forward_pattern else { return Ok(Vec::new()) };
    let all = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    forwarding.parameters(all, service.config.triton_release, |name, value| {
        spelling.map_or_else(|| name.to_owned(), |spelling| spelling.of(name, value))
    })
}

pub(super) fn header_length(
    headers: &HeaderMap,
    announced: Option<u64>,
    release: TritonRelease,
) -> Result<Option<usize>, InferError> {
    match headers.get(HEADER_LENGTH) {
        None => Ok(None),
        Some(value) => binary::header_length(value.as_bytes(), announced, release).map(Some),
    }
}

/// The request of a body, what it uses of its caller's regions, and its charge: read on this thread, or beside it where
/// that takes long. What becomes of a long text is charged before there is memory for it.
///
/// # Errors
///
/// What the codec refuses; `Overloaded` where there is no room for what the text becomes.
pub(super) async fn read_request(
    service: &Service,
    body: Body,
    header_length: Option<usize>,
    model: &str,
    charge: Charge,
) -> Result<(InferRequest, Held, Charge), InferError> {
    let (max_input_bytes, release) = (service.config.http_max_input_bytes, service.config.triton_release);
    if is_read_at_once(&body, header_length, &service.regions) {
        let growing = GrowingCharge::new(charge, &service.budget);
        let room = |bytes| growing.copy(bytes);
        let mut finder = Finder::new(&service.regions, &room);
        let options = DecodeOptions { max_input_bytes, memory: None, release };
        let request = decode(body, header_length, model, options, &mut finder)?;
        return Ok((request, finder.held, growing.read()));
    }
    let (model, regions, budget) = (model.to_owned(), Arc::clone(&service.regions), Arc::clone(&service.budget));
    let read = Box::pin(offload(move || {
        let growing = GrowingCharge::new(charge, &budget);
        let room = |bytes| growing.copy(bytes);
        let mut finder = Finder::new(&regions, &room);
        let options = DecodeOptions { max_input_bytes, memory: Some(&|bytes| growing.take(bytes)), release };
        let request = decode(body, header_length, &model, options, &mut finder)?;
        Ok((request, finder.held, growing.read()))
    }));
    read.await.unwrap_or_else(|| Err(InferError::internal("the request could not be read")))
}

/// Whether a network thread may decode a body, whose tensors may lie in these regions.
fn is_read_at_once(body: &Body, header_length: Option<usize>, regions: &Regions) -> bool {
    let text = match body {
        Body::Whole(body) => &body[..header_length.map_or(body.len(), |length| length.min(body.len()))],
        Body::Parts { json, .. } => json,
    };
    text.len() <= limits::READ_AT_ONCE_BYTES && !regions.may_wait(text)
}

fn decode(
    body: Body,
    header_length: Option<usize>,
    model: &str,
    options: DecodeOptions<'_>,
    finder: &mut Finder<'_>,
) -> Result<InferRequest, InferError> {
    match body {
        Body::Whole(body) if header_length == Some(0) || body.is_empty() => Ok(raw(body)),
        Body::Whole(body) => json::decode_request(&body, header_length, model, options, finder),
        Body::Parts { json, tensors } if json.is_empty() => Ok(raw(tensors)),
        Body::Parts { json, tensors } => json::decode_parts(&json, tensors, model, options, finder),
    }
}

/// A request whose body is the only input's bytes; name, datatype and shape come from the model.
fn raw(body: Bytes) -> InferRequest {
    let shape = [i64::try_from(body.len()).unwrap_or(i64::MAX)].into_iter().collect();
    let tensor = Tensor { name: "".into(), datatype: alipes_protocol::Datatype::Uint8, shape, data: body };
    InferRequest { inputs: vec![tensor], raw: true, binary_by_default: true, ..InferRequest::default() }
}

/// The response with this body, compressed where the client wants that.
pub(super) async fn respond(encoded: Encoded, coding: Coding, budget: &Arc<Budget>) -> Response<ResponseBody> {
    let (binary, length) = (encoded.binary, encoded.head.len());
    // In the place of tensors that are no longer needed; those behind it are counted already.
    let head = Charge::unchecked(budget, length as u64).over(encoded.head);
    let slices = std::iter::once(head).chain(encoded.tail);
    let content_type = if binary { response::OCTETS } else { response::JSON };
    let mut response = match coding {
        Coding::Identity => response::new(StatusCode::OK, content_type, ResponseBody::of(slices)),
        coding => compressed(slices.collect(), content_type, coding, budget).await,
    };
    if binary {
        // The length of the JSON once it is expanded.
        response.headers_mut().insert(HEADER_LENGTH, HeaderValue::from(length));
    }
    response
}

/// The response with a compressed body, or uncompressed where that fails.
async fn compressed(
    slices: Vec<Bytes>,
    content_type: HeaderValue,
    coding: Coding,
    budget: &Arc<Budget>,
) -> Response<ResponseBody> {
    let Some(body) = compressed_body(&slices, coding, budget).await else {
        return response::new(StatusCode::OK, content_type, ResponseBody::of(slices));
    };
    let mut response = response::new(StatusCode::OK, content_type, body);
    response.headers_mut().extend(coding.header().map(|name| (CONTENT_ENCODING, name)));
    response
}

/// A compressed body with its charge; none where it cannot be compressed.
pub(super) async fn compressed_body(slices: &[Bytes], coding: Coding, budget: &Arc<Budget>) -> Option<Bytes> {
    let body = compression::compress(slices, coding).await?;
    Some(Charge::unchecked(budget, body.len() as u64).over(body))
}

/// The refusal of an unknown compression, which names the known ones.
pub(super) fn unknown_coding(error: &InferError) -> Response<ResponseBody> {
    let mut response = response::infer_error(error);
    response.headers_mut().insert(ACCEPT_ENCODING, Coding::OFFERED);
    response
}
