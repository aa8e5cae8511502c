//! A call: a plain HTTP request to the endpoint of a model, `/<name>`, and the plain response to it.

use std::pin::pin;
use std::sync::Arc;

use alipes_net::connection::RequestBody;
use alipes_protocol::limits::HTTP_MAX_BODY_BYTES;
use alipes_protocol::trace::{Moment, Trace};
use alipes_protocol::{Code, InferError, InferRequest, Origin, Parameter, call};
use alipes_request::budget::Charge;
use alipes_service::{ModelVersion, Service};
use alipes_shared_memory::Held;
use alipes_stats::clock::now_ns;
use alipes_stats::turn::note_request;
use bytes::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, Response};

use super::body::{self, Body, Expected, Received};
use super::call_answer::CallAnswer;
use super::call_form::CallForm;
use super::call_headers;
use super::call_stream;
use super::caller::Caller;
use super::compression::{self, Coding};
use super::hints;
use super::infer::unknown_coding;
use super::response::{self, ResponseBody};

/// Answers a request to the endpoint of a model.
pub async fn call(
    service: &Arc<Service>,
    model: &Arc<ModelVersion>,
    request: Box<Request<RequestBody>>,
    caller: Caller<'_>,
) -> Response<ResponseBody> {
    note_request("call", &model.name);
    caller.names_model(&model.name);
    let (head, mut body) = request.into_parts();
    let trace = service.trace(&model.name, &head.headers);
    let read = pin!(read(service, model, &head, &mut body, trace.as_ref())).await;
    let stays = body::discard(body);
    let mut response = match read {
        Ok(mut request) => {
            caller.name(&mut request.id);
            request.admitted = caller.is_admitted;
            pin!(answer(service, model, InferRequest { trace: trace.clone(), ..request }, &head.headers)).await
        }
        Err(error) => {
            service.log_refusal(&model.name, "", caller.request_id(), &error);
            if error.origin == Origin::Endpoint { unknown_coding(&error) } else { response::call_error(&error) }
        }
    };
    if !stays {
        response::announce_close(&mut response);
    }
    if let Some(trace) = trace {
        response.body_mut().traced(trace);
    }
    response
}

async fn answer(
    service: &Service,
    model: &Arc<ModelVersion>,
    request: InferRequest,
    headers: &HeaderMap,
) -> Response<ResponseBody> {
    let (coding, budget) = (Coding::of_answer(headers), &service.budget);
    if model.is_decoupled() {
        return match service.generate(model, request).await {
            Ok(generation) if model.is_whole() => {
                Box::pin(call_stream::answer_in_pieces(generation, coding, budget)).await
            }
            Ok(generation) => {
                Box::pin(call_stream::answer(generation, CallForm::wanted(headers), coding, budget)).await
            }
            Err(error) => response::call_error(&error),
        };
    }
    match pin!(service.infer(model, request, Held::default())).await.and_then(CallAnswer::of) {
        Ok(answer) => answer.respond(coding, budget).await,
        Err(error) => response::call_error(&error),
    }
}

/// Reads a request.
///
/// # Errors
///
/// `Unsupported` for an unknown compression, and what `body::read_element` and `compression::expand` refuse.
async fn read(
    service: &Service,
    model: &ModelVersion,
    head: &Parts,
    body: &mut RequestBody,
    trace: Option<&Arc<Trace>>,
) -> Result<InferRequest, InferError> {
    let coding = Coding::of_request(&head.headers);
    let coding = coding
        .ok_or_else(|| InferError::new(Code::Unsupported, "Unsupported compression type").at(Origin::Endpoint))?;
    let max_bytes = HTTP_MAX_BODY_BYTES.min(service.config.http_max_input_bytes as u64);
    let read = read_body(service, model, coding, max_bytes, body).await;
    let (element, charge) =
        read.map_err(|error| if error.code == Code::TooLarge { too_large(max_bytes) } else { error })?;
    if let Some(trace) = trace {
        trace.note(Moment::HttpRecvEnd, now_ns());
    }
    let mut request = InferRequest {
        inputs: vec![call::input(element)],
        parameters: parameters(model, head, coding),
        call: true,
        logged: service.payloads.draw(&head.headers),
        ..InferRequest::default()
    };
    charge.ride(&service.budget, &mut request, &Held::default())?;
    Ok(request)
}

/// The body with its length in front, and its charge.
async fn read_body(
    service: &Service,
    model: &ModelVersion,
    coding: Coding,
    max_bytes: u64,
    body: &mut RequestBody,
) -> Result<(Bytes, Charge), InferError> {
    let budget = &service.budget;
    if coding == Coding::Identity {
        let expected = Expected { header_length: None, max_bytes, memory: model.body_memory(), budget };
        return body::read_element(body, expected).await;
    }
    let compressed = body::read_text(body, max_bytes, budget).await?;
    let expected = Expected { header_length: None, max_bytes, memory: None, budget };
    let into = Received::new(&expected, 0);
    let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
    let (Body::Whole(whole) | Body::Parts { tensors: whole, .. }, charge) =
        compression::expand(compressed, into, max_bytes).await?;
    Ok((body::as_element(whole).await?, charge))
}

/// The refusal of a body, which need be no JSON.
fn too_large(max_bytes: u64) -> InferError {
    let text = format!(
        "the request body has more than the {max_bytes} bytes that are allowed: send less, or let the server take more \
         with --http-max-input-size"
    );
    InferError::new(Code::TooLarge, text)
}

/// What the model learns beside the body: nothing, where it looks at no head and the body is JSON.
///
/// With the head, calls of small documents took 1.2 and 1.4 times the processor time of server and worker (a batched
/// function and one that is not, median of 5 rounds on two busy cores, a development build, 11/2026).
fn parameters(model: &ModelVersion, head: &Parts, coding: Coding) -> Vec<(String, Parameter)> {
    let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let looks = model.spec.endpoint.as_ref().is_none_or(|endpoint| endpoint.head);
    let path = head.uri.path();
    // A path of the protocols says what is asked; the endpoint's own says nothing.
    let says_more = model.is_whole() || path.starts_with("/v1/");
    if !looks && !says_more && content_type == "application/json" {
        return Vec::new();
    }
    let query = head.uri.query().unwrap_or_default();
    let headers = call_headers::of_request(head, coding != Coding::Identity);
    let text = |name: &str, value: String| (name.to_owned(), Parameter::String(value));
    let mut parameters = vec![
        text(call::CONTENT_TYPE, content_type.to_owned()),
        text(call::HEADERS, headers),
        text(call::METHOD, head.method.as_str().to_owned()),
        text(call::QUERY, query.to_owned()),
    ];
    parameters.extend(says_more.then(|| text(call::PATH, path.to_owned())));
    parameters
}

/// The refusal of a method that an endpoint does not take; none where it does.
pub fn wrong_method(service: &Service, model: &ModelVersion, method: &Method) -> Option<Response<ResponseBody>> {
    let endpoint = model.spec.endpoint.as_ref().filter(|endpoint| !endpoint.takes(method.as_str()))?;
    let allowed = endpoint.allow();
    let mut response = response::wrong_method(false, &hints::of_endpoint(service, &model.name, &allowed));
    // The names of methods can stand in a header.
    response.headers_mut().extend(HeaderValue::try_from(allowed).ok().map(|allow| (ALLOW, allow)));
    Some(response)
}
