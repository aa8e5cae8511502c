//! `generate` and `generate_stream`: plain JSON in, one JSON object or server-sent events out.

use std::sync::Arc;

use alipes_net::connection::RequestBody;
use alipes_protocol::codec::json::{self, DeclaredInput, DecodeOptions, Memory};
use alipes_protocol::trace::Moment;
use alipes_protocol::{InferError, InferRequest, limits};
use alipes_request::budget::GrowingCharge;
use alipes_service::generate::{Generation, declared_input};
use alipes_service::offload::offload_if;
use alipes_service::{ModelVersion, Service};
use alipes_shared_memory::Held;
use alipes_stats::clock::now_ns;
use bytes::Bytes;
use hyper::{HeaderMap, Request, Response, StatusCode};

use super::caller::Caller;
use super::compression::Coding;
use super::infer::header;
use super::response::{self, ResponseBody};
use super::{body, events};

/// Triton's words for a model that does not answer exactly once.
const NOT_ONE: &str = "generate expects model to produce exactly 1 response, use generate stream for model that \
                       generates various number of responses";

/// Answers a request, with as many events as the model gives responses or with its one response.
pub async fn generate(
    service: &Service,
    model: &str,
    version: &str,
    events: bool,
    request: Box<Request<RequestBody>>,
    caller: Caller<'_>,
) -> Response<ResponseBody> {
    let (head, mut body) = request.into_parts();
    let trace = service.trace(model, &head.headers);
    let read = read(service, model, version, &head.headers, &mut body).await;
    let stays = body::discard(body);
    if let Some(trace) = &trace {
        trace.note(Moment::HttpRecvEnd, now_ns());
    }
    let begun = match read {
        Ok((model, mut request)) => {
            caller.name(&mut request.id);
            service.generate(&model, InferRequest { trace: trace.clone(), ..request }).await
        }
        Err(error) => {
            service.log_refusal(model, version, caller.request_id(), &error);
            Err(error)
        }
    };
    let mut response = match begun {
        Ok(generation) if events => events::answer(generation).await,
        Ok(generation) => answer(generation).await,
        Err(error) => response::error(&error),
    };
    if !stays {
        response::announce_close(&mut response);
    }
    if let Some(trace) = trace {
        response.body_mut().traced(trace);
    }
    response
}

/// Reads and parses a request, and looks its model up.
async fn read(
    service: &Service,
    name: &str,
    version: &str,
    headers: &HeaderMap,
    body: &mut RequestBody,
) -> Result<(Arc<ModelVersion>, InferRequest), InferError> {
    let model = service.lookup_divided(name, version, |name| header(headers, name))?;
    let declared = {
        let model = Arc::clone(&model);
        move |input: &str| declared_input(&model, input)
    };
    let mut request = read_request(service, name, headers, body, declared).await?;
    request.logged = service.payloads.draw(headers);
    let model = service.home_of(model, version, &request);
    Ok((model, request))
}

/// Reads and parses a request. `declared` finds an input of the model, or of the graph, by its name.
///
/// # Errors
///
/// What `body::read_text` and `decode_generate` refuse, and a compressed body.
pub(super) async fn read_request(
    service: &Service,
    name: &str,
    headers: &HeaderMap,
    body: &mut RequestBody,
    declared: impl Fn(&str) -> Option<DeclaredInput> + Send + 'static,
) -> Result<InferRequest, InferError> {
    if Coding::of_request(headers) != Some(Coding::Identity) {
        return Err(InferError::invalid("Unsupported content-encoding, only 'identity' is supported."));
    }
    let (max_input_bytes, release) = (service.config.http_max_input_bytes, service.config.triton_release);
    let (text, charge) = body::read_text(body, max_input_bytes as u64, &service.budget).await?;
    let is_long = text.len() > limits::READ_AT_ONCE_BYTES;
    let read = {
        let (name, budget) = (name.to_owned(), Arc::clone(&service.budget));
        move || {
            let growing = GrowingCharge::new(charge, &budget);
            let memory = |bytes| growing.take(bytes);
            let memory = is_long.then_some(&memory as &Memory<'_>);
            let options = DecodeOptions { max_input_bytes, memory, release };
            let request = json::decode_generate(&text, &name, options, declared)?;
            Ok((request, growing.read()))
        }
    };
    let read = offload_if(is_long, read).await;
    let (mut request, charge) = read.unwrap_or_else(|| Err(InferError::internal("the request could not be read")))?;
    charge.ride(&service.budget, &mut request, &Held::default())?;
    Ok(request)
}

/// The one response. The status follows from the first of several, as in Triton, and what is wrong from the last.
pub(super) async fn answer(mut generation: Generation) -> Response<ResponseBody> {
    let Some(first) = generation.next().await else {
        return response::new(StatusCode::OK, response::JSON, response::error_body(NOT_ONE));
    };
    let first = events::encode(first).await;
    let mut responses = 1;
    while generation.next().await.is_some() {
        responses += 1;
    }
    let status = events::status(&first);
    let body = match first {
        _ if responses > 1 => response::error_body(NOT_ONE),
        Ok(text) => Bytes::from(text),
        Err(error) => response::error_body(&error.message),
    };
    response::new(status, response::JSON, body)
}
