//! The HTTP door: hyper's connections, HTTP/1 and HTTP/2, served directly.

mod body;
mod compression;
mod control;
mod events;
mod generate;
mod infer;
mod logging;
pub mod metrics;
mod prior_knowledge;
mod repeated;
mod reply;
mod route;
mod sequences;
mod shared_memory;
mod statistics;
mod tracing;

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;

use alipes_protocol::limits;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::net::connection::{Answering, End, Incoming, Line, Spelling, attend};
use crate::net::door::Door;
use crate::net::http2;
use crate::service::Service;
use prior_knowledge::has_prior_knowledge;
use reply::Reply;
use route::{Region, Route};

/// Serves one connection until it ends, or, once `draining` is done, until the requests that it is in are answered.
pub async fn serve_connection(mut line: Line, door: Arc<Door>, draining: impl Future<Output = ()>) {
    let mut draining = pin!(draining);
    let speaks_http2 = match line.agreed_protocol() {
        Some(protocol) => protocol == b"h2",
        None => tokio::select! {
            known = within(&door, has_prior_knowledge(&mut line)) => match known {
                Some(Ok(known)) => known,
                Some(Err(_)) => return,
                None => return refuse_head(line).await,
            },
            () = draining.as_mut() => return,
        },
    };
    if speaks_http2 {
        return serve_http2(line, door, draining).await;
    }
    serve_http1(line, door, draining).await;
}

/// What comes in the time that a head may take.
async fn within<T>(door: &Door, future: impl Future<Output = T>) -> Option<T> {
    match door.patience.head {
        Some(time) => timeout(time, future).await.ok(),
        None => Some(future.await),
    }
}

async fn serve_http1(line: Line, door: Arc<Door>, draining: impl Future<Output = ()>) {
    let spelling = door.service.config.http_header_forward_pattern.is_some().then(Spelling::default);
    let line = line.heard_by(spelling.clone());
    let (pulse, watch) = (Arc::clone(line.pulse()), door.watch_http1(&line));
    let builder = builder(&door);
    let handler = service_fn(move |request: Request<hyper::body::Incoming>| {
        let (door, call, spelling) = (Arc::clone(&door), pulse.begin(), spelling.clone());
        async move {
            let request = request.map(|body| Incoming::new(body, door.patience.stall).in_chunks());
            let response = handle(&door, request, spelling.as_ref()).await;
            Ok::<_, Infallible>(response.map(|body| Answering::new(body, call)))
        }
    });
    let mut connection = builder.serve_connection(TokioIo::new(line), handler);
    let end = attend(Pin::new(&mut connection), http1::Connection::graceful_shutdown, watch, draining, || {}).await;
    if end == End::NoHead {
        refuse_head(connection.into_parts().io.into_inner()).await;
    }
}

async fn serve_http2(line: Line, door: Arc<Door>, draining: impl Future<Output = ()>) {
    let (line, watch) = door.watch_http2(line);
    let pulse = Arc::clone(line.pulse());
    let builder = http2::builder(&door, &pulse);
    let handler = service_fn(move |request: Request<hyper::body::Incoming>| {
        let (door, call) = (Arc::clone(&door), pulse.begin());
        async move {
            let response = if request.headers().len() > door.limits.max_header_count {
                reply::too_many_headers()
            } else {
                handle(&door, request.map(|body| Incoming::new(body, door.patience.stall)), None).await
            };
            Ok::<_, Infallible>(response.map(|body| Answering::in_pieces(body, call)))
        }
    });
    let connection = pin!(builder.serve_connection(TokioIo::new(line), handler));
    attend(connection, http2::Connection::graceful_shutdown, watch, draining, || {}).await;
}

/// Without `pipeline_flush`, which would have every answer copied, and as many kept as a client asks for and does not read.
fn builder(door: &Door) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .max_buf_size(limits::HTTP_READ_BUFFER_BYTES)
        .max_header_size(door.limits.max_header_bytes)
        // The watch measures that, without a timer for each request.
        .header_read_timeout(None);
    // Given at all, it costs each request an allocation.
    if door.limits.max_header_count != limits::HTTP_MAX_HEADERS {
        builder.max_headers(door.limits.max_header_count);
    }
    builder
}

/// Tells a client that its request was not waited for any longer.
async fn refuse_head(mut line: Line) {
    let answer = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    // A client that has time for this has time for the whole of it: it is a hundred bytes.
    let _ = timeout(limits::REFUSAL_TIME, async {
        line.write_all(answer).await?;
        line.shutdown().await
    })
    .await;
}

async fn handle(door: &Door, request: Request<Incoming>, spelling: Option<&Spelling>) -> Response<Reply> {
    if !door.restrictions.is_empty()
        && let Some(header) = door.restrictions.lacks_http(request.uri().path(), request.headers())
    {
        let refused = reply::restricted(header);
        body::discard(request.into_body());
        return refused;
    }
    answer(&door.service, request, spelling).await
}

async fn answer(service: &Service, request: Request<Incoming>, spelling: Option<&Spelling>) -> Response<Reply> {
    match Route::of(request.method(), request.uri().path()) {
        Route::Infer { model, version } => {
            let (model, version) = (model.to_owned(), version.to_owned());
            infer::infer(service, &model, &version, request, spelling).await
        }
        Route::Generate { model, version, events } => {
            let (model, version) = (model.to_owned(), version.to_owned());
            generate::generate(service, &model, &version, events, request).await
        }
        Route::Live => reply::health(service.server_live()),
        Route::Ready => reply::health(service.server_ready().await),
        Route::Server => reply::json(&service.server_metadata()),
        Route::ModelReady { model, version } => {
            let (model, version) = (model.to_owned(), version.to_owned());
            control::model_ready(service, &model, &version).await
        }
        Route::ModelMetadata { model, version } => reply::json_or(service.model_metadata(model, version)),
        Route::ModelConfig { model, version } => control::model_config(service, model, version),
        Route::Statistics { model, version } => statistics::statistics(service, model, version),
        Route::Explain { model, version } => reply::json_or(service.explain(model, version)),
        Route::SequenceState { model, version, id } => {
            let [model, version, id] = [model, version, id].map(str::to_owned);
            sequences::state(service, &model, &version, &id).await
        }
        Route::EndSequence { model, version, id } => {
            let [model, version, id] = [model, version, id].map(str::to_owned);
            sequences::end(service, &model, &version, &id).await
        }
        Route::RestoreSequence { model, version, id } => {
            let [model, version, id] = [model, version, id].map(str::to_owned);
            sequences::restore(service, &model, &version, &id, request.into_body()).await
        }
        Route::Index => control::index(service, request.into_body()).await,
        Route::Load { model } => {
            let model = model.to_owned();
            control::load(service, &model, request.into_body()).await
        }
        Route::Unload { model } => {
            let model = model.to_owned();
            control::unload(service, &model, request.into_body()).await
        }
        Route::LogSettings => logging::settings(service),
        Route::ChangeLog => logging::change(service, request.into_body()).await,
        Route::TraceSettings { model } => tracing::settings(service, model),
        Route::ChangeTracing { model } => {
            let model = model.to_owned();
            tracing::change(service, &model, request.into_body()).await
        }
        Route::Region(region) => {
            let name = region.name.to_owned();
            shared_memory::region(service, Region { name: &name, ..region }, request.into_body()).await
        }
        Route::NamedRepository => control::named_repository(),
        Route::WrongMethod { plain } => reply::wrong_method(plain),
        Route::Unknown => reply::not_found(),
    }
}
