//! From a request's route to the function that answers it.

use std::pin::pin;
use std::sync::Arc;

use alipes_net::api_keys::KeyFault;
use alipes_net::connection::RequestBody;
use alipes_net::restricted::Group;
use alipes_protocol::InferError;
use alipes_request::inflight::stopping;
use alipes_service::Service;
use alipes_stats::turn::note_request;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, Response};
use smallvec::{SmallVec, smallvec};

use super::caller::Caller;
use super::connection::HttpProtocol;
use super::page;
use super::response::{self, ResponseBody};
use super::route::{Region, RegionAction, Route};
use super::{
    body, call, called, control, generate, graph, hints, infer, logging, predict, predictors, sequences, shared_memory,
    statistics, tracing, traffic, written_page,
};

const UNDECODABLE: &str = "the name in the path is no UTF-8 once it is percent-decoded";

/// Answers a request, unless it lacks a key or the header that its group needs, comes from a page that may not send it,
/// or the server stops and refuses it.
pub async fn handle(
    http: &HttpProtocol,
    request: Box<Request<RequestBody>>,
    caller: Caller<'_>,
    refusing: bool,
) -> Response<ResponseBody> {
    if let Some(fault) = key_fault(http, &request) {
        return without_body(response::unauthenticated(fault), request.into_body());
    }
    if let Some(header) = missing_header(http, &request) {
        return without_body(response::restricted(header), request.into_body());
    }
    if let Some(fault) = http.sites.fault(&request, caller.peer.address)
        && !has_key(http, &request)
    {
        return without_body(fault.response(), request.into_body());
    }
    if refusing && is_refused_at_stop(http, &request) {
        return without_body(response::error(&stopping()), request.into_body());
    }
    pin!(answer(http, request, caller)).await
}

/// What a request asks for: the graph, where this server runs one and has nothing else at the path.
#[inline]
fn route_of<'r>(http: &HttpProtocol, method: &Method, path: &'r str, headers: &HeaderMap) -> Route<'r> {
    let route = Route::of(method, path);
    match &http.graph {
        None => route,
        Some(_) if path == graph::READY_PATH => Route::RouterReady,
        Some(graph) if graph.takes(&http.service, &route, headers) => Route::Graph,
        Some(_) => route,
    }
}

/// Why a request is not admitted that needs a key.
#[inline]
fn key_fault(http: &HttpProtocol, request: &Request<RequestBody>) -> Option<KeyFault> {
    let keys = &http.policy.api_keys;
    if keys.is_empty() {
        return None;
    }
    groups_of(http, request).into_iter().find_map(|group| keys.fault(group, request.headers()))
}

/// The header that a request lacks in a restricted group.
#[inline]
fn missing_header<'h>(http: &'h HttpProtocol, request: &Request<RequestBody>) -> Option<&'h str> {
    let restrictions = &http.policy.restrictions;
    if restrictions.is_empty() {
        return None;
    }
    let mut groups = groups_of(http, request).into_iter().flatten();
    groups.find_map(|group| restrictions.missing_header(group, request.headers()))
}

/// Whether a request that lacks nothing has shown a key, or the header of a restricted group: what page it comes from
/// does not matter then.
#[cold]
fn has_key(http: &HttpProtocol, request: &Request<RequestBody>) -> bool {
    let policy = &http.policy;
    let is_restricted = |group: Group| policy.restrictions.guard(group);
    groups_of(http, request).into_iter().any(|group| policy.api_keys.guard(group) || group.is_some_and(is_restricted))
}

/// The groups of a request: that of its route, which may be in none; of the page for browsers those of all that it
/// shows.
fn groups_of(http: &HttpProtocol, request: &Request<RequestBody>) -> SmallVec<[Option<Group>; 2]> {
    let path = request.uri().path();
    match route_of(http, request.method(), path, request.headers()) {
        Route::Page if page::is_wanted(request.headers()) => page::GROUPS.map(Some).into(),
        route => smallvec![route.group(path)],
    }
}

#[cold]
fn is_refused_at_stop(http: &HttpProtocol, request: &Request<RequestBody>) -> bool {
    let path = request.uri().path();
    match route_of(http, request.method(), path, request.headers()) {
        Route::Endpoint { model } => http.service.registry.endpoint(&model).is_some(),
        route => route.is_refused_at_stop(path),
    }
}

async fn answer(http: &HttpProtocol, request: Box<Request<RequestBody>>, caller: Caller<'_>) -> Response<ResponseBody> {
    let service = &http.service;
    let route = route_of(http, request.method(), request.uri().path(), request.headers());
    note_request(route.name(), route.model());
    if let Some(model) = called::called_model(service, &route, request.headers()) {
        return Box::pin(call::call(service, &model, request, caller)).await;
    }
    if let (Route::Graph, Some(graph)) = (&route, &http.graph) {
        return Box::pin(graph::answer(graph, service, request, caller)).await;
    }
    match route {
        Route::Infer { model, version } => {
            let (model, version) = (model.into_owned(), version.to_owned());
            pin!(infer::infer(service, &model, &version, request, caller)).await
        }
        Route::Predict { model, version } => {
            let (model, version) = (model.into_owned(), version.to_owned());
            Box::pin(predict::predict(service, &model, &version, request, caller)).await
        }
        Route::Generate { model, version, events } => {
            let (model, version) = (model.into_owned(), version.to_owned());
            pin!(generate::generate(service, &model, &version, events, request, caller)).await
        }
        Route::Endpoint { model } => match service.registry.endpoint(&model) {
            Some(model) => match call::wrong_method(service, &model, request.method()) {
                Some(refusal) => without_body(refusal, request.into_body()),
                None => pin!(call::call(service, &model, request, caller)).await,
            },
            None => {
                let hint = hints::of_path(service, request.uri().path(), request.headers());
                without_body(response::not_found(&hint), request.into_body())
            }
        },
        Route::RestoreSequence { model, version, id } => {
            let (model, version, id) = (model.into_owned(), version.to_owned(), id.to_owned());
            sequences::restore(service, &model, &version, &id, request.into_body()).await
        }
        Route::ChangeTraffic { model } => {
            let model = model.into_owned();
            traffic::change(service, &model, request.into_body()).await
        }
        Route::Index => control::index(service, request.into_body()).await,
        Route::Load { model } => {
            let model = model.into_owned();
            control::load(service, &model, request.into_body()).await
        }
        Route::Unload { model } => {
            let model = model.into_owned();
            control::unload(service, &model, request.into_body()).await
        }
        Route::ChangeLog => logging::change(service, request.into_body()).await,
        Route::ChangeTracing { model } => {
            let model = model.into_owned();
            tracing::change(service, &model, request.into_body()).await
        }
        Route::Region(Region { cuda: false, action: RegionAction::Register, name }) => {
            let name = name.into_owned();
            shared_memory::register(service, &name, request.into_body()).await
        }
        Route::Region(Region { cuda: true, action: RegionAction::Register, name }) => {
            let name = name.into_owned();
            match service.check_cuda_region(&name).await {
                Ok(()) => shared_memory::register_cuda(service, &name, request.into_body()).await,
                // Without a GPU the body says nothing.
                Err(refusal) => without_body(response::error(&refusal), request.into_body()),
            }
        }
        Route::Page if page::is_wanted(request.headers()) => {
            let (head, body) = request.into_parts();
            without_body(page::page(service, &head).await, body)
        }
        Route::RouterReady => without_body(graph::ready(service).await, request.into_body()),
        _ => {
            let (head, body) = request.into_parts();
            let response = answer_head(service, &head).await;
            without_body(response, body)
        }
    }
}

/// Answers a request of a route for which its body says nothing.
async fn answer_head(service: &Arc<Service>, head: &Parts) -> Response<ResponseBody> {
    let (method, path) = (&head.method, head.uri.path());
    let not_found = || response::not_found(&hints::of_path(service, path, &head.headers));
    match Route::of(method, path) {
        Route::Live => response::signed(response::health(service.server_live())),
        Route::Ready => response::signed(response::health(service.server_ready().await)),
        Route::Server => response::signed(response::json(&service.server_metadata())),
        Route::ModelReady { model, version } => control::model_ready(service, &model, version).await,
        Route::ModelMetadata { model, version } => response::json_or(service.model_metadata(&model, version)),
        Route::ModelConfig { model, version } => control::model_config(service, &model, version),
        Route::Statistics { model, version } => statistics::statistics(service, &model, version).await,
        Route::Explain { model, version } => response::json_or(service.explain(&model, version)),
        Route::SequenceState { model, version, id } => sequences::state(service, &model, version, id).await,
        Route::EndSequence { model, version, id } => sequences::end(service, &model, version, id).await,
        Route::PredictorNames => predictors::names(service).await,
        Route::Predictor { model } => predictors::status(service, &model).await,
        Route::PredictorVersion { model, version } => predictors::version_status(service, &model, version).await,
        Route::ExplainPrediction { model, version } => response::empty_or(service.explain_prediction(&model, version)),
        Route::NotPredict { model, version, verb } => predictors::not_offered(service, &model, version, verb),
        // Triton has nothing there, recorded; KServe asks its runtimes there, and clients of its SDK.
        Route::Page if service.config.live_at_root || service.registry.takes_whole() => page::alive(),
        Route::Traffic { model } => traffic::settings(service, &model),
        Route::TrafficOutcomes { model } => response::json_or(service.traffic_outcomes(&model)),
        Route::LogSettings => logging::settings(service),
        Route::TraceSettings { model } => tracing::settings(service, &model),
        Route::Region(region) => shared_memory::region(service, region).await,
        Route::WrittenPage { path } => written_page::answer(service, method, path).unwrap_or_else(not_found),
        Route::Undecodable => response::error(&InferError::invalid(UNDECODABLE)),
        Route::NamedRepository => control::named_repository(),
        Route::WrongMethod { plain } => response::wrong_method(plain, &hints::of_method(service, path)),
        Route::Infer { .. }
        | Route::Endpoint { .. }
        | Route::Generate { .. }
        | Route::RestoreSequence { .. }
        | Route::Index
        | Route::Load { .. }
        | Route::Unload { .. }
        | Route::ChangeLog
        | Route::ChangeTraffic { .. }
        | Route::ChangeTracing { .. }
        | Route::Page
        | Route::Predict { .. }
        | Route::Graph
        | Route::RouterReady
        | Route::Unknown => not_found(),
    }
}

/// The answer to a request whose body is dropped.
pub fn without_body(mut response: Response<ResponseBody>, body: RequestBody) -> Response<ResponseBody> {
    if !body::discard(body) {
        response::announce_close(&mut response);
    }
    response
}
