//! One gRPC connection, from its preface to its last response.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use alipes_net::api_keys::ApiKeys;
use alipes_net::connection::{
    RequestBody, TrackedBody, TransportStream, drive_call, drive_connection, end_with_answer,
};
use alipes_net::http2;
use alipes_net::opening::Opening;
use alipes_net::phase::Shutdown;
use alipes_net::policy::{ListenerKind, ListenerPolicy};
use alipes_net::protocol::{Protocol, Serving};
use alipes_net::restricted::Group;
use alipes_protocol::{Code, InferError};
use alipes_request::inflight::{stopping, unfinished};
use alipes_service::Service;
use alipes_service::request_id::RequestId;
use alipes_stats::access::Spoken;
use http::{HeaderMap, Request, Response, StatusCode};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use super::infer::Caller;
use super::response::ResponseBody;
use super::{methods, status};

/// The body of the answer to HTTP/1.
const NO_HTTP1: &str = "{\"error\":\"this port speaks gRPC, which needs HTTP/2: send this request to the server's HTTP \
                        port, which is 8000 where nothing else was configured\"}";

/// The gRPC listener's protocol: its policy, and the service behind it.
pub struct GrpcProtocol {
    service: Arc<Service>,
    policy: ListenerPolicy,
}

impl GrpcProtocol {
    /// gRPC in front of a service, as its configuration says.
    pub fn new(service: Arc<Service>, api_keys: &Arc<ApiKeys>) -> GrpcProtocol {
        GrpcProtocol { policy: ListenerPolicy::new(ListenerKind::Grpc, &service.config, api_keys), service }
    }
}

impl Protocol for GrpcProtocol {
    fn policy(&self) -> &ListenerPolicy {
        &self.policy
    }

    fn serve(self: Arc<Self>, transport: TransportStream, shutdown: Shutdown) -> Serving {
        Box::pin(serve_connection(transport, self, shutdown))
    }
}

/// Serves a connection until the client leaves or, once the network drains, until the calls that are in have ended.
pub async fn serve_connection(mut transport: TransportStream, grpc: Arc<GrpcProtocol>, shutdown: Shutdown) {
    match Opening::of(&mut transport, &grpc.policy, &shutdown).await {
        Opening::Http2 => serve_http2(transport, grpc, shutdown).await,
        Opening::Other => refuse_http1(transport).await,
        Opening::TimedOut | Opening::Ended => {}
    }
}

/// Answers a client of HTTP/1 in its own words. Source: RFC 9110, section 15.5.22.
async fn refuse_http1(transport: TransportStream) {
    let answer = format!(
        "HTTP/1.1 426 Upgrade Required\r\nupgrade: h2c\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{NO_HTTP1}",
        NO_HTTP1.len()
    );
    end_with_answer(transport, answer.as_bytes()).await;
}

async fn serve_http2(transport: TransportStream, grpc: Arc<GrpcProtocol>, shutdown: Shutdown) {
    let peer = transport.peer();
    let (transport, watchdog) = grpc.policy.watch_http2(transport);
    let activity = Arc::clone(transport.activity());
    let builder = http2::builder(&grpc.policy, &activity);
    // Streams end when their requests have; no client would do it for them.
    let draining = shutdown.clone();
    let calls = service_fn(move |request: Request<hyper::body::Incoming>| {
        let mut call = activity.begin();
        if let Some(record) = grpc.service.record(Spoken::Grpc, request.method().as_str(), request.uri().path(), peer) {
            call.record_in(record);
        }
        let (request_id, record) = (RequestId::of(request.headers()), call.record().cloned());
        let caller = Caller { request_id, record, logged: None, metadata: None };
        let request_id = caller.request_id.clone();
        let request = request.map(|body| RequestBody::new(body, grpc.policy.timeouts.stall));
        let (method, headers) = (request.uri().path(), request.headers());
        let begun = match refuse(&grpc.policy, method, headers, call.ending().is_refusing()) {
            None => Ok(methods::begin(&grpc.service, &draining, request, caller)),
            Some(refused) => Err(refused),
        };
        async move {
            let mut response = match begun {
                Ok(begun) => {
                    // Pinned where it is made: it is large, and would be copied.
                    let answer = pin!(begun.answer());
                    drive_call(&call, answer).await.unwrap_or_else(|| status::refusal(&unfinished()))
                }
                Err(refused) => *refused,
            };
            if let Some(request_id) = request_id {
                request_id.return_in(response.headers_mut());
            }
            if let Some(record) = call.record() {
                match response.status() {
                    StatusCode::OK => record.ended(response.headers()),
                    _ => record.not_understood(),
                }
            }
            Ok::<_, Infallible>(response.map(|body| TrackedBody::in_pieces(body, call)))
        }
    });
    let connection = pin!(builder.serve_connection(TokioIo::new(transport), calls));
    drive_connection(connection, http2::Connection::graceful_shutdown, watchdog, shutdown).await;
}

/// The answer to a call that is not looked at. Boxed, since it is rare and every call carries the value about.
fn refuse(
    policy: &ListenerPolicy,
    method: &str,
    headers: &HeaderMap,
    stops: bool,
) -> Option<Box<Response<ResponseBody>>> {
    if headers.len() > policy.limits.max_header_count {
        return Some(Box::new(status::no_grpc(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)));
    }
    if !policy.api_keys.is_empty()
        && let Some(fault) = policy.api_keys.fault(methods::group(method), headers)
    {
        return Some(Box::new(status::refusal(&InferError::new(Code::Unauthenticated, fault.text()))));
    }
    if let Some(header) = missing_header(policy, method, headers) {
        let text = format!("This protocol is restricted, expecting header '{header}'");
        return Some(Box::new(status::refusal(&InferError::new(Code::Unavailable, text))));
    }
    let is_refused = stops && methods::group(method).is_some_and(Group::is_refused_at_stop);
    is_refused.then(|| Box::new(status::refusal(&stopping())))
}

/// The header that a call lacks in a restricted group.
fn missing_header<'p>(policy: &'p ListenerPolicy, method: &str, headers: &HeaderMap) -> Option<&'p str> {
    if policy.restrictions.is_empty() {
        return None;
    }
    policy.restrictions.missing_header(methods::group(method)?, headers)
}
