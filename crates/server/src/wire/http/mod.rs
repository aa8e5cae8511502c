//! The HTTP door: hyper's HTTP/1 connection, served directly.

mod body;
mod compression;
mod control;
mod events;
mod generate;
mod infer;
pub mod metrics;
mod reply;
mod route;
mod shared_memory;
mod spelling;
mod statistics;

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use alipes_protocol::limits;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::handlers::Service;
use reply::Reply;
use route::{Region, Route};
use spelling::{Listening, Spelling};

/// Serves one connection until it ends, or, once `draining` is done, until the request that it is in is answered.
pub async fn serve_connection(stream: TcpStream, service: Arc<Service>, draining: impl Future<Output = ()>) {
    if service.config.http_header_forward_pattern.is_some() {
        let (stream, spelling) = Listening::to(stream);
        converse(stream, service, draining, Some(spelling)).await;
    } else {
        converse(stream, service, draining, None).await;
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    service: Arc<Service>,
    draining: impl Future<Output = ()>,
    spelling: Option<Spelling>,
) {
    let handler = service_fn(move |request| {
        let (service, spelling) = (Arc::clone(&service), spelling.clone());
        async move { Ok::<_, Infallible>(handle(&service, request, spelling.as_ref()).await) }
    });
    let connection = builder().serve_connection(TokioIo::new(stream), handler);
    let (mut connection, draining) = (pin!(connection), pin!(draining));
    tokio::select! {
        // A broken connection has nobody left to be told.
        _ = connection.as_mut() => return,
        () = draining => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

fn builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(limits::HTTP_READ_BUFFER_BYTES).pipeline_flush(true);
    builder
}

async fn handle(service: &Service, request: Request<Incoming>, spelling: Option<&Spelling>) -> Response<Reply> {
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
        Route::Index => control::index(service, request.into_body()).await,
        Route::Load { model } => {
            let model = model.to_owned();
            control::load(service, &model, request.into_body()).await
        }
        Route::Unload { model } => {
            let model = model.to_owned();
            control::unload(service, &model, request.into_body()).await
        }
        Route::Region(region) => {
            let name = region.name.to_owned();
            shared_memory::region(service, Region { name: &name, ..region }, request.into_body()).await
        }
        Route::NamedRepository => control::named_repository(),
        Route::Later(feature) => reply::later(feature),
        Route::WrongMethod { plain } => reply::wrong_method(plain),
        Route::Unknown => reply::not_found(),
    }
}
