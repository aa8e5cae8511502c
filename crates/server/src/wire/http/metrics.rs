//! The metrics port.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::HeaderValue;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::reply::{self, Reply};
use crate::handlers::Service;

const EXPOSITION: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// Serves one connection of the metrics port until it ends or `closing` is done.
pub async fn serve_connection(stream: TcpStream, service: Arc<Service>, closing: impl Future<Output = ()>) {
    let handler = service_fn(move |request| {
        let response = handle(&service, &request);
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), handler));
    tokio::select! {
        _ = connection => {}
        () = closing => {}
    }
}

/// `/metrics` is the exposition, any other path is empty, any other method is refused. Source: reference section 1.1.
fn handle<B>(service: &Service, request: &Request<B>) -> Response<Reply> {
    if request.method() != Method::GET {
        return reply::wrong_method(true);
    }
    let text = if request.uri().path() == "/metrics" { service.metrics_text() } else { String::new() };
    reply::answer(StatusCode::OK, EXPOSITION, Bytes::from(text))
}
