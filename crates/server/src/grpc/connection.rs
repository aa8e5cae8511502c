//! One gRPC connection, from its preface to its last answer.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use alipes_protocol::{Code, InferError};
use http::{HeaderMap, Request, Response, StatusCode};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::watch;

use super::answer::Answer;
use super::{methods, status};
use crate::net::connection::{Answering, Incoming, Line, attend};
use crate::net::door::Door;
use crate::net::http2;

/// Serves a connection until the client leaves, or until `draining` is over and the calls that are in have ended.
pub async fn serve_connection(line: Line, door: Arc<Door>, draining: impl Future<Output = ()>) {
    let (drain, drained) = watch::channel(false);
    let (line, watch) = door.watch_http2(line);
    let pulse = Arc::clone(line.pulse());
    let builder = http2::builder(&door, &pulse);
    let calls = service_fn(move |request: Request<hyper::body::Incoming>| {
        let call = pulse.begin();
        let request = request.map(|body| Incoming::new(body, door.patience.stall));
        let answer = match refuse(&door, request.uri().path(), request.headers()) {
            None => Ok(methods::answer(&door.service, &drained, request)),
            Some(refused) => Err(refused),
        };
        async move {
            let response = match answer {
                Ok(answer) => answer.await,
                Err(refused) => *refused,
            };
            Ok::<_, Infallible>(response.map(|body| Answering::in_pieces(body, call)))
        }
    });
    let connection = pin!(builder.serve_connection(TokioIo::new(line), calls));
    // Streams end when their requests have; no client would do it for them.
    let drain = || {
        drain.send_replace(true);
    };
    attend(connection, http2::Connection::graceful_shutdown, watch, draining, drain).await;
}

/// The answer to a call that is not looked at. Boxed, since it is rare and every call carries the value about.
fn refuse(door: &Door, method: &str, headers: &HeaderMap) -> Option<Box<Response<Answer>>> {
    if headers.len() > door.limits.max_header_count {
        return Some(Box::new(status::no_grpc(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)));
    }
    if door.restrictions.is_empty() {
        return None;
    }
    let header = door.restrictions.lacks_grpc(method, headers)?;
    let text = format!("This protocol is restricted, expecting header '{header}'");
    Some(Box::new(status::refusal(&InferError::new(Code::Unavailable, text))))
}
