//! The metrics listener.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use alipes_net::api_keys::ApiKeys;
use alipes_net::connection::{TrackedBody, TransportStream, drive_connection};
use alipes_net::phase::Shutdown;
use alipes_net::policy::{ListenerKind, ListenerPolicy};
use alipes_net::protocol::{Protocol, Serving};
use alipes_net::restricted::Group;
use alipes_service::Service;
use alipes_service::offload::offload;
use alipes_stats::turn::note_request;
use bytes::Bytes;
use hyper::header::HeaderValue;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;

use super::connection::{builder, note_status, record};
use super::hints;
use super::response::{self, ResponseBody};

const EXPOSITION: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// The metrics listener's protocol.
pub struct MetricsProtocol {
    service: Arc<Service>,
    policy: ListenerPolicy,
}

impl MetricsProtocol {
    /// The metrics of a service.
    pub fn new(service: Arc<Service>, api_keys: &Arc<ApiKeys>) -> MetricsProtocol {
        MetricsProtocol { policy: ListenerPolicy::new(ListenerKind::Metrics, &service.config, api_keys), service }
    }
}

impl Protocol for MetricsProtocol {
    fn policy(&self) -> &ListenerPolicy {
        &self.policy
    }

    fn serve(self: Arc<Self>, transport: TransportStream, shutdown: Shutdown) -> Serving {
        Box::pin(serve_connection(transport, self, shutdown))
    }
}

/// Serves one connection until it ends, or the network does.
async fn serve_connection(transport: TransportStream, metrics: Arc<MetricsProtocol>, shutdown: Shutdown) {
    let peer = transport.peer();
    let (activity, watchdog) = (Arc::clone(transport.activity()), metrics.policy.watch_http1(&transport));
    let builder = builder(&metrics.policy);
    let handler = service_fn(move |request: Request<hyper::body::Incoming>| {
        let (metrics, mut call) = (Arc::clone(&metrics), activity.begin());
        record(&metrics.service, &mut call, &request, peer);
        async move {
            let mut response = match metrics.policy.api_keys.fault(Some(Group::Metrics), request.headers()) {
                Some(fault) => response::unauthenticated(fault),
                None => handle(&metrics.service, &request).await,
            };
            if call.ending().is_announced() {
                response::announce_close(&mut response);
            }
            note_status(&call, &response);
            Ok::<_, Infallible>(response.map(|body| TrackedBody::new(body, call)))
        }
    });
    let mut connection = builder.serve_connection(TokioIo::new(transport), handler);
    drive_connection(Pin::new(&mut connection), http1::Connection::graceful_shutdown, watchdog, shutdown).await;
}

/// `/metrics` is the exposition, any other path holds no metric, any other method is refused. Source: Triton, recorded.
async fn handle<B>(service: &Arc<Service>, request: &Request<B>) -> Response<ResponseBody> {
    note_request("metrics", "");
    if request.method() != Method::GET {
        return response::wrong_method(true, &hints::of_page(service));
    }
    let text = match request.uri().path() {
        "/metrics" if service.has_many_versions() => {
            let service = Arc::clone(service);
            offload(move || service.metrics_text()).await.unwrap_or_default()
        }
        "/metrics" => service.metrics_text(),
        _ => hints::of_metrics_port(service),
    };
    response::new(StatusCode::OK, EXPOSITION, Bytes::from(text))
}
