//! One gRPC connection, from its preface to its last response.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use alipes_net::connection::{RequestBody, TrackedBody, TransportStream, drive_connection};
use alipes_net::http2;
use alipes_net::policy::{ListenerKind, ListenerPolicy};
use alipes_net::protocol::{Protocol, Serving, Shutdown};
use alipes_protocol::{Code, InferError};
use alipes_service::Service;
use http::{HeaderMap, Request, Response, StatusCode};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::watch;

use super::response::ResponseBody;
use super::{methods, status};

/// The gRPC listener's protocol: its policy, and the service behind it.
pub struct GrpcProtocol {
    service: Arc<Service>,
    policy: ListenerPolicy,
}

impl GrpcProtocol {
    /// gRPC in front of a service, as its configuration says.
    pub fn new(service: Arc<Service>) -> GrpcProtocol {
        GrpcProtocol { policy: ListenerPolicy::new(ListenerKind::Grpc, &service.config), service }
    }
}

impl Protocol for GrpcProtocol {
    fn policy(&self) -> &ListenerPolicy {
        &self.policy
    }

    fn serve(self: Arc<Self>, transport: TransportStream, shutdown: Shutdown) -> Serving {
        Box::pin(serve_connection(transport, self, shutdown.begun()))
    }
}

/// Serves a connection until the client leaves, or until `draining` is over and the calls that are in have ended.
pub async fn serve_connection(transport: TransportStream, grpc: Arc<GrpcProtocol>, draining: impl Future<Output = ()>) {
    let (drain, drained) = watch::channel(false);
    let (transport, watchdog) = grpc.policy.watch_http2(transport);
    let activity = Arc::clone(transport.activity());
    let builder = http2::builder(&grpc.policy, &activity);
    let calls = service_fn(move |request: Request<hyper::body::Incoming>| {
        let call = activity.begin();
        let request = request.map(|body| RequestBody::new(body, grpc.policy.timeouts.stall));
        let answer = match refuse(&grpc.policy, request.uri().path(), request.headers()) {
            None => Ok(methods::answer(&grpc.service, &drained, request)),
            Some(refused) => Err(refused),
        };
        async move {
            let response = match answer {
                Ok(answer) => answer.await,
                Err(refused) => *refused,
            };
            Ok::<_, Infallible>(response.map(|body| TrackedBody::in_pieces(body, call)))
        }
    });
    let connection = pin!(builder.serve_connection(TokioIo::new(transport), calls));
    // Streams end when their requests have; no client would do it for them.
    let drain = || {
        drain.send_replace(true);
    };
    drive_connection(connection, http2::Connection::graceful_shutdown, watchdog, draining, drain).await;
}

/// The answer to a call that is not looked at. Boxed, since it is rare and every call carries the value about.
fn refuse(policy: &ListenerPolicy, method: &str, headers: &HeaderMap) -> Option<Box<Response<ResponseBody>>> {
    if headers.len() > policy.limits.max_header_count {
        return Some(Box::new(status::no_grpc(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)));
    }
    if policy.restrictions.is_empty() {
        return None;
    }
    let header = policy.restrictions.missing_header(methods::group(method)?, headers)?;
    let text = format!("This protocol is restricted, expecting header '{header}'");
    Some(Box::new(status::refusal(&InferError::new(Code::Unavailable, text))))
}
