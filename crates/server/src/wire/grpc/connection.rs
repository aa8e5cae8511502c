//! One gRPC connection, from its preface to its last answer.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use alipes_protocol::limits::{GRPC_MAX_CONCURRENT_CALLS, HTTP_MAX_HEADER_BYTES};
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::methods;
use crate::handlers::Service;

/// Bytes a client may send on one call before we have read them: a picture of 3x224x224 FP32 in one go, with room.
const CALL_WINDOW_BYTES: u32 = 4 << 20;

/// Bytes a client may send on one connection before we have read them.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// Largest piece that a client may send at once; smaller messages come in one piece and are not copied at all.
///
/// CPU of the server for one 602 KB message of the Python client (two shared cores, 1,500 calls a run, three runs):
/// 193 µs with pieces of 16 KiB, 165 of 64 KiB, 135 of 128 KiB, 160 of 256 KiB, 220 of 1 MiB, whose buffers are
/// allocated anew for each message.
const FRAME_BYTES: u32 = 128 << 10;

/// Serves a connection until the client leaves, or until `draining` is over and the calls that are in have ended.
pub async fn serve_connection(stream: TcpStream, service: Arc<Service>, draining: impl Future<Output = ()>) {
    let (drain, drained) = watch::channel(false);
    let calls = service_fn(move |request: Request<Incoming>| {
        let answer = methods::answer(&service, &drained, request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .adaptive_window(false)
        .initial_stream_window_size(CALL_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES)
        .max_concurrent_streams(GRPC_MAX_CONCURRENT_CALLS)
        .max_header_list_size(HTTP_MAX_HEADER_BYTES as u32)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), calls);
    let mut connection = pin!(connection);
    // A broken connection concerns nobody but its client, who knows.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = draining => {
            // Streams end when their requests have; no client would do it for them.
            drain.send_replace(true);
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}
