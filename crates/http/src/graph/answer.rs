//! The answer of a graph to a request.

use std::sync::Arc;

use alipes_graph::{Failure, Reply, is_valid, run};
use alipes_net::connection::RequestBody;
use alipes_protocol::InferError;
use alipes_protocol::limits::READ_AT_ONCE_BYTES;
use alipes_service::Service;
use alipes_service::graph::TensorGraph;
use alipes_service::offload::offload_if;
use alipes_stats::turn::note_request;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Request, Response, StatusCode};
use tokio::time::timeout;

use super::calls::Calls;
use super::endpoint::GraphEndpoint;
use super::{generate, tensors};
use crate::body;
use crate::caller::Caller;
use crate::response::{self, ResponseBody};
use crate::route::Route;

/// Answers a request. Dropping the future withdraws the calls of its steps.
pub async fn answer(
    endpoint: &GraphEndpoint,
    service: &Arc<Service>,
    request: Box<Request<RequestBody>>,
    caller: Caller<'_>,
) -> Response<ResponseBody> {
    note_request("graph", &endpoint.graph.name);
    caller.names_model(&endpoint.graph.name);
    let (head, mut body) = request.into_parts();
    match call_of(service, &head) {
        Ok(None) => {}
        Ok(Some((graph, call))) => {
            let answered = Box::pin(call_by_name(service, graph, call, &head.headers, &mut body, caller)).await;
            return with_rest(answered, body);
        }
        Err(error) => return with_rest(response::infer_error(&error), body),
    }
    let read = body::read_text(&mut body, service.config.http_max_input_bytes as u64, &service.budget).await;
    // Counted until it is answered: a server that stops waits for it, and takes the calls of its steps.
    let admitted = read.and_then(|read| Ok((read, service.inflight.enter()?)));
    let stays = body::discard(body);
    let mut response = match admitted {
        Ok(((text, _charge), _admission)) => {
            let calls = Calls::new(endpoint, service, &head.headers, caller.within_request());
            let begun = service.begin_graph_run();
            let outcome = timeout(endpoint.graph.timeout, run(&endpoint.graph, &calls, text)).await;
            let outcome = outcome.unwrap_or_else(|_| Err(too_long(endpoint)));
            begun.end_with(outcome.as_ref().map_or_else(|failure| failure.status, |reply| reply.status));
            match outcome {
                Ok(reply) => respond(reply).await,
                Err(failure) => refuse(&failure),
            }
        }
        Err(error) => response::call_error(&error),
    };
    if !stays {
        response::announce_close(&mut response);
    }
    response
}

/// What is asked of the graph by its name.
#[derive(Clone, Copy, Debug)]
enum NamedCall {
    Infer,
    Generate { events: bool },
}

/// The graph, where it is asked as a model of V2 and all of its steps are models of this server.
///
/// # Errors
///
/// The graph has not the version that was asked for.
fn call_of(service: &Service, head: &Parts) -> Result<Option<(TensorGraph, NamedCall)>, InferError> {
    let (model, version, call) = match Route::of(&head.method, head.uri.path()) {
        Route::Infer { model, version } => (model, version, NamedCall::Infer),
        Route::Generate { model, version, events } => (model, version, NamedCall::Generate { events }),
        _ => return Ok(None),
    };
    // A graph with steps elsewhere takes JSON, at this path as at any other.
    let graph = service.graph(&model, version)?.and_then(|graph| service.with_models(graph).ok());
    Ok(graph.map(|graph| (graph, call)))
}

async fn call_by_name(
    service: &Arc<Service>,
    graph: TensorGraph,
    call: NamedCall,
    headers: &HeaderMap,
    body: &mut RequestBody,
    caller: Caller<'_>,
) -> Response<ResponseBody> {
    match call {
        NamedCall::Infer => tensors::answer(service, &graph, headers, body, caller).await,
        NamedCall::Generate { events } => generate::answer(service, graph, events, headers, body, caller).await,
    }
}

/// An answer to a request whose body may not have been read to its end.
fn with_rest(mut response: Response<ResponseBody>, body: RequestBody) -> Response<ResponseBody> {
    if !body::discard(body) {
        response::announce_close(&mut response);
    }
    response
}

/// The failure of a request that takes longer than the graph allows.
fn too_long(endpoint: &GraphEndpoint) -> Failure {
    let seconds = endpoint.graph.timeout.as_secs_f64();
    let cause = format!("the graph was not done in {seconds} s: its timeout, or serverWrite of routerTimeouts");
    Failure { status: StatusCode::GATEWAY_TIMEOUT.as_u16(), cause }
}

async fn respond(reply: Reply<Bytes>) -> Response<ResponseBody> {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if reply.body.is_empty() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        let mut response = Response::new(ResponseBody::default());
        *response.status_mut() = status;
        return response;
    }
    let body = reply.body.clone();
    let is_json = offload_if(body.len() > READ_AT_ONCE_BYTES, move || is_valid(&body)).await;
    let content_type = if is_json == Some(true) { response::JSON } else { sniffed(&reply.body) };
    response::new(status, content_type, reply.body)
}

fn refuse(failure: &Failure) -> Response<ResponseBody> {
    let status = StatusCode::from_u16(failure.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response::new(status, response::JSON, Bytes::from(failure.body()))
}

/// What Go says of a body of which nothing is known: text, or bytes. Source: Go's `net/http`.
fn sniffed(body: &Bytes) -> HeaderValue {
    const LOOKED_AT: usize = 512;
    let is_binary = |byte: &u8| matches!(byte, 0..=0x08 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    let start = &body[..body.len().min(LOOKED_AT)];
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    if start.iter().any(is_binary) { response::OCTETS } else { text }
}

/// Whether the server takes requests. Source: KServe's router.
pub async fn ready(service: &Service) -> Response<ResponseBody> {
    if service.server_ready().await {
        return Response::new(ResponseBody::default());
    }
    let text = if service.inflight.is_closed() { "shutting down\n" } else { "models are loading\n" };
    let mut response = Response::new(ResponseBody::of([Bytes::from_static(text.as_bytes())]));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
