//! One HTTP connection, from its first byte to its last response.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;

use alipes_net::api_keys::ApiKeys;
use alipes_net::connection::{
    Call, End, RequestBody, Spelling, TrackedBody, TransportStream, drive_call, drive_connection, drop_rest,
};
use alipes_net::http2;
use alipes_net::opening::Opening;
use alipes_net::phase::Shutdown;
use alipes_net::policy::{ListenerKind, ListenerPolicy};
use alipes_net::protocol::{Protocol, Serving};
use alipes_protocol::limits;
use alipes_request::inflight::unfinished;
use alipes_service::Service;
use alipes_service::request_id::RequestId;
use alipes_stats::access::Spoken;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use super::caller::{Caller, Peer};
use super::cors::Cors;
use super::dispatch::{handle, without_body};
use super::graph::GraphEndpoint;
use super::head;
use super::response::{self, ResponseBody};
use super::route::Route;
use super::site::SitePolicy;

/// The HTTP listener's protocol: its policy, and the service behind it.
pub struct HttpProtocol {
    pub(super) service: Arc<Service>,
    pub(super) policy: ListenerPolicy,
    pub(super) sites: SitePolicy,
    /// The graph whose requests are answered, beside models.
    pub(super) graph: Option<GraphEndpoint>,
    cors: Option<Cors>,
}

impl HttpProtocol {
    /// HTTP in front of a service, as its configuration says.
    pub fn new(service: Arc<Service>, api_keys: &Arc<ApiKeys>) -> HttpProtocol {
        let policy = ListenerPolicy::new(ListenerKind::Http, &service.config, api_keys);
        let (sites, cors) = (SitePolicy::new(&service.config), Cors::new(&service.config));
        let graph = service.config.graph.as_ref().map(GraphEndpoint::new);
        HttpProtocol { policy, sites, graph, cors, service }
    }
}

impl Protocol for HttpProtocol {
    fn policy(&self) -> &ListenerPolicy {
        &self.policy
    }

    fn serve(self: Arc<Self>, transport: TransportStream, shutdown: Shutdown) -> Serving {
        Box::pin(serve_connection(transport, self, shutdown))
    }
}

/// Serves one connection until it ends or, once the network drains, until its open requests are answered.
pub async fn serve_connection(mut transport: TransportStream, http: Arc<HttpProtocol>, shutdown: Shutdown) {
    match Opening::of(&mut transport, &http.policy, &shutdown).await {
        Opening::Http2 => serve_http2(transport, http, shutdown).await,
        Opening::Other => serve_http1(transport, http, shutdown).await,
        Opening::TimedOut => refuse_head(transport, head_timeout()).await,
        Opening::Ended => {}
    }
}

async fn serve_http1(transport: TransportStream, http: Arc<HttpProtocol>, shutdown: Shutdown) {
    let spelling = http.service.config.http_header_forward_pattern.is_some().then(Spelling::default);
    let (peer, transport) = (transport.peer(), transport.with_spelling(spelling.clone()));
    let (activity, watchdog) = (Arc::clone(transport.activity()), http.policy.watch_http1(&transport));
    let (builder, counts) = (builder(&http.policy), Arc::clone(&activity));
    let handler = service_fn(move |request: Request<hyper::body::Incoming>| {
        let (http, mut call, spelling) = (Arc::clone(&http), activity.begin(), spelling.clone());
        record(&http.service, &mut call, &request, peer);
        let with_body = |body| RequestBody::new(body, http.policy.timeouts.stall).with_counted_chunks();
        // Boxed, since each function on its way would copy its third of a kilobyte.
        let request = Box::new(request.map(with_body));
        async move {
            let mut response = match head::check(request.version(), request.headers()) {
                Ok(()) => {
                    pin!(answer(&http, &call, request, Peer { address: peer, spelling: spelling.as_ref() })).await
                }
                Err(fault) => response::bad_head(fault),
            };
            if call.ending().is_announced() {
                response::announce_close(&mut response);
            }
            note_status(&call, &response);
            Ok::<_, Infallible>(response.map(|body| TrackedBody::new(body, call)))
        }
    });
    let mut connection = builder.serve_connection(TokioIo::new(transport), handler);
    let retire = http1::Connection::graceful_shutdown;
    match drive_connection(Pin::new(&mut connection), retire, watchdog, shutdown).await {
        End::HeadTimeout => refuse_head(connection.into_parts().io.into_inner(), head_timeout()).await,
        End::HeadCut => refuse_head(connection.into_parts().io.into_inner(), head_cut()).await,
        End::Closed if counts.ending.is_cut() => drop_rest(connection.into_parts().io.into_inner()).await,
        End::Closed | End::TimedOut => {}
    }
}

/// The answer to a request, or the reason why there is none before the server ends.
#[inline]
async fn answer(
    http: &HttpProtocol,
    call: &Call,
    request: Box<Request<RequestBody>>,
    peer: Peer<'_>,
) -> Response<ResponseBody> {
    let request_id = RequestId::of(request.headers());
    let caller = Caller::new(call, peer, request_id.as_ref());
    // Boxed, so that the calls of a server without it do not carry its values along.
    let grant = http.cors.as_ref().map(|cors| Box::new(cors.grant(request.headers())));
    let preflight = http.cors.as_ref().and_then(|cors| cors.preflight(&request).map(Box::new));
    let mut response = match preflight {
        Some(response) => without_body(*response, request.into_body()),
        None => {
            // Pinned where it is made: it is large, and would be copied.
            let answer = pin!(handle(http, request, caller, call.ending().is_refusing()));
            drive_call(call, answer).await.unwrap_or_else(|| response::error(&unfinished()))
        }
    };
    if let Some(grant) = grant {
        grant.add_to(response.headers_mut());
    }
    if let Some(id) = request_id {
        id.return_in(response.headers_mut());
    }
    response
}

/// Has a verbose log say how a call ends; else one look at a flag.
#[inline]
pub fn record<B>(service: &Service, call: &mut Call, request: &Request<B>, peer: Option<IpAddr>) {
    let (method, path) = (request.method(), request.uri().path());
    if let Some(record) = service.record(Spoken::Http, method.as_str(), path, peer) {
        record.names(Route::of(method, path).model(), "");
        call.record_in(record);
    }
}

/// Has the record of a call know how it is answered.
#[inline]
pub fn note_status(call: &Call, response: &Response<ResponseBody>) {
    if let Some(record) = call.record() {
        record.answered(response.status().as_u16());
    }
}

async fn serve_http2(transport: TransportStream, http: Arc<HttpProtocol>, shutdown: Shutdown) {
    let peer = transport.peer();
    let (transport, watchdog) = http.policy.watch_http2(transport);
    let activity = Arc::clone(transport.activity());
    let builder = http2::builder(&http.policy, &activity);
    let handler = service_fn(move |request: Request<hyper::body::Incoming>| {
        let (http, mut call) = (Arc::clone(&http), activity.begin());
        record(&http.service, &mut call, &request, peer);
        let request = Box::new(request.map(|body| RequestBody::new(body, http.policy.timeouts.stall)));
        async move {
            let response = if request.headers().len() > http.policy.limits.max_header_count {
                response::too_many_headers()
            } else {
                pin!(answer(&http, &call, request, Peer { address: peer, spelling: None })).await
            };
            note_status(&call, &response);
            Ok::<_, Infallible>(response.map(|body| TrackedBody::in_pieces(body, call)))
        }
    });
    let connection = pin!(builder.serve_connection(TokioIo::new(transport), handler));
    drive_connection(connection, http2::Connection::graceful_shutdown, watchdog, shutdown).await;
}

/// Without `pipeline_flush`, which would have every answer copied, and as many kept as a client asks for and does not
/// read.
pub fn builder(policy: &ListenerPolicy) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .max_buf_size(limits::HTTP_READ_BUFFER_BYTES)
        .max_header_size(policy.limits.max_header_bytes)
        // The watch measures that, without a timer for each request.
        .header_read_timeout(None);
    // Given at all, it costs each request an allocation.
    if policy.limits.max_header_count != limits::HTTP_MAX_HEADERS {
        builder.max_headers(policy.limits.max_header_count);
    }
    builder
}

/// The answer to a head that took too long.
fn head_timeout() -> String {
    "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".to_owned()
}

/// The answer to a head that is not whole when the server ends.
fn head_cut() -> String {
    let body = response::error_body(&unfinished().message);
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{}",
        body.len(),
        String::from_utf8_lossy(&body)
    )
}

/// Answers a client whose request head is not waited for any longer.
async fn refuse_head(mut transport: TransportStream, answer: String) {
    // A client that has time for this has time for the whole of it: it is a few hundred bytes.
    let _ = timeout(limits::REFUSAL_TIME, async {
        transport.write_all(answer.as_bytes()).await?;
        transport.shutdown().await
    })
    .await;
}
