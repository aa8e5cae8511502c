//! Answers of the HTTP door.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use alipes_protocol::trace::Trace;
use alipes_protocol::{InferError, Origin};
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

use super::events::Events;
use crate::trace::sent::Sent;

/// Content type of JSON answers.
pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Content type of answers with a binary tail.
pub const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");
/// Content type of server-sent events.
pub const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream; charset=utf-8");
/// Content type that Triton gives to health answers and to some errors.
pub const PLAIN: HeaderValue = HeaderValue::from_static("text/plain");

/// An answer's body: slices that leave as they are, with one vectored write where the socket takes it.
#[derive(Default)]
pub struct Reply {
    slices: VecDeque<Bytes>,
    left: u64,
    /// What follows the slices, as it comes.
    events: Option<Box<Events>>,
    sent: Option<Sent>,
}

impl Reply {
    /// A body of several slices.
    pub fn of(slices: impl IntoIterator<Item = Bytes>) -> Reply {
        let slices: VecDeque<Bytes> = slices.into_iter().filter(|slice| !slice.is_empty()).collect();
        let left = slices.iter().map(|slice| slice.len() as u64).sum();
        Reply { slices, left, events: None, sent: None }
    }

    /// A body that begins with an event, which others follow.
    pub fn of_events(first: Bytes, events: Events) -> Reply {
        Reply { events: Some(Box::new(events)), ..Reply::of([first]) }
    }

    /// Has it noted when the answer begins to leave, which is now, and when it has left.
    pub fn traced(&mut self, trace: Arc<Trace>) {
        self.sent = Some(Sent::http(trace));
    }
}

impl From<Bytes> for Reply {
    fn from(slice: Bytes) -> Reply {
        Reply::of([slice])
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(slice) = self.slices.pop_front() {
            self.left -= slice.len() as u64;
            return Poll::Ready(Some(Ok(Frame::data(slice))));
        }
        let Some(events) = &mut self.events else { return Poll::Ready(None) };
        let event = ready!(events.poll_next(context));
        if event.is_none() {
            self.events = None;
        }
        Poll::Ready(event.map(|event| Ok(Frame::data(event))))
    }

    fn is_end_stream(&self) -> bool {
        self.slices.is_empty() && self.events.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        if self.events.is_some() { SizeHint::default() } else { SizeHint::with_exact(self.left) }
    }
}

/// An answer with this status, content type and body.
pub fn answer(status: StatusCode, content_type: HeaderValue, body: impl Into<Reply>) -> Response<Reply> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// 200 with a JSON document.
pub fn json(document: &impl Serialize) -> Response<Reply> {
    match serde_json::to_vec(document) {
        Ok(text) => answer(StatusCode::OK, JSON, Bytes::from(text)),
        Err(cause) => error(&InferError::internal(cause.to_string())),
    }
}

/// 200 with a JSON document, or the error.
pub fn json_or(outcome: Result<impl Serialize, InferError>) -> Response<Reply> {
    match outcome {
        Ok(document) => json(&document),
        Err(cause) => error(&cause),
    }
}

/// 200 without a body, or the error.
pub fn empty_or(outcome: Result<(), InferError>) -> Response<Reply> {
    match outcome {
        Ok(()) => answer(StatusCode::OK, JSON, Reply::default()),
        Err(cause) => error(&cause),
    }
}

/// An error of a control request, always labelled as JSON.
pub fn error(error: &InferError) -> Response<Reply> {
    answer(status(error), JSON, error_body(&error.message))
}

/// An error of an inference request, labelled as Triton labels it: by who found it.
pub fn infer_error(error: &InferError) -> Response<Reply> {
    let content_type = if error.origin == Origin::Request { JSON } else { PLAIN };
    answer(status(error), content_type, error_body(&error.message))
}

/// Health: 200 or 400, without a body.
pub fn health(good: bool) -> Response<Reply> {
    answer(if good { StatusCode::OK } else { StatusCode::BAD_REQUEST }, PLAIN, Reply::default())
}

/// 404 for a path that does not exist.
pub fn not_found() -> Response<Reply> {
    answer(StatusCode::NOT_FOUND, PLAIN, error_body("Not Found"))
}

/// 405 for a path that exists under another method.
pub fn wrong_method(plain: bool) -> Response<Reply> {
    answer(StatusCode::METHOD_NOT_ALLOWED, if plain { PLAIN } else { JSON }, error_body("Method Not Allowed"))
}

/// 403 for a request that needs a header. Source: Triton's status and text.
pub fn restricted(header: &str) -> Response<Reply> {
    let text = format!("This API is restricted, expecting header '{header}'");
    answer(StatusCode::FORBIDDEN, PLAIN, error_body(&text))
}

/// 431 where there are too many headers.
pub fn too_many_headers() -> Response<Reply> {
    answer(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, PLAIN, Reply::default())
}

fn status(error: &InferError) -> StatusCode {
    StatusCode::from_u16(error.code.row().http_status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    error: &'a str,
}

/// The document that an error is told with.
pub fn error_body(message: &str) -> Bytes {
    serde_json::to_vec(&ErrorBody { error: message }).unwrap_or_default().into()
}
