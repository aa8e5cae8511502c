//! HTTP responses.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use alipes_net::api_keys::KeyFault;
use alipes_net::connection::CutOff;
use alipes_protocol::trace::Trace;
use alipes_protocol::{Code, InferError, Origin};
use alipes_request::inflight::unfinished;
use alipes_stats::trace::sent::Sent;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, SERVER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use serde::Serialize;

use super::broken_off::BrokenOff;
pub use super::error_body::error_body;
use super::events::Events;
use super::head::HeadFault;
use super::hint::Hint;

/// Content type of JSON responses.
pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Content type of responses with a binary tail.
pub const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");
/// Content type of server-sent events.
pub const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream; charset=utf-8");
/// Content type that Triton gives to health responses and to some errors.
pub const PLAIN: HeaderValue = HeaderValue::from_static("text/plain");

/// When to send a refused request again: after the shortest time that the header can name, a second.
const SOON: HeaderValue = HeaderValue::from_static("1");

/// Which alipes answers: `/v2` gives the name and version of Triton.
const PRODUCT: HeaderValue = HeaderValue::from_static(concat!("alipes/", env!("CARGO_PKG_VERSION")));

/// The body of a response: slices that are sent as they are, with one vectored write where the socket accepts it.
#[derive(Default)]
pub struct ResponseBody {
    slices: VecDeque<Bytes>,
    left: u64,
    /// Events that follow the slices, as they arrive.
    events: Option<Box<Events>>,
    /// It breaks off behind the slices.
    broken_off: bool,
    sent: Option<Sent>,
}

impl ResponseBody {
    /// A body of several slices.
    pub fn of(slices: impl IntoIterator<Item = Bytes>) -> ResponseBody {
        let slices: VecDeque<Bytes> = slices.into_iter().filter(|slice| !slice.is_empty()).collect();
        let left = slices.iter().map(|slice| slice.len() as u64).sum();
        ResponseBody { slices, left, events: None, broken_off: false, sent: None }
    }

    /// A body that begins with an event, which others follow.
    pub fn of_events(first: Bytes, events: Events) -> ResponseBody {
        ResponseBody { events: Some(Box::new(events)), ..ResponseBody::of([first]) }
    }

    /// Records in a trace that sending begins now, and when it ends.
    pub fn traced(&mut self, trace: Arc<Trace>) {
        self.sent = Some(Sent::http(trace));
    }
}

/// Tells the client that its connection ends with this answer.
pub fn announce_close(response: &mut Response<ResponseBody>) {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
}

impl From<Bytes> for ResponseBody {
    fn from(slice: Bytes) -> ResponseBody {
        ResponseBody::of([slice])
    }
}

impl CutOff for ResponseBody {
    /// The last event is the reason; what does not come in events needs none.
    fn cut_off(&mut self) {
        let Some(events) = self.events.take() else { return };
        match events.form().error(&unfinished()) {
            Ok(last) => {
                self.left += last.len() as u64;
                self.slices.push_back(last);
            }
            Err(BrokenOff) => self.broken_off = true,
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        if let Some(slice) = self.slices.pop_front() {
            self.left -= slice.len() as u64;
            return Poll::Ready(Some(Ok(Frame::data(slice))));
        }
        if std::mem::take(&mut self.broken_off) {
            return Poll::Ready(Some(Err(BrokenOff)));
        }
        let Some(events) = &mut self.events else { return Poll::Ready(None) };
        let event = ready!(events.poll_next(context));
        if !matches!(event, Some(Ok(_))) {
            self.events = None;
        }
        if let Some(Err(BrokenOff)) = event {
            // Only at the next poll: until then the connection writes what has come before.
            self.broken_off = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(event.map(|event| event.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.slices.is_empty() && self.events.is_none() && !self.broken_off
    }

    fn size_hint(&self) -> SizeHint {
        let goes_on = self.events.is_some() || self.broken_off;
        if goes_on { SizeHint::default() } else { SizeHint::with_exact(self.left) }
    }
}

/// A response with this status, content type and body.
pub fn new(status: StatusCode, content_type: HeaderValue, body: impl Into<ResponseBody>) -> Response<ResponseBody> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// 200 with a JSON document.
pub fn json(document: &impl Serialize) -> Response<ResponseBody> {
    match serde_json::to_vec(document) {
        Ok(text) => new(StatusCode::OK, JSON, Bytes::from(text)),
        Err(cause) => error(&InferError::internal(cause.to_string())),
    }
}

/// 200 with a JSON document, or the error.
pub fn json_or(outcome: Result<impl Serialize, InferError>) -> Response<ResponseBody> {
    match outcome {
        Ok(document) => json(&document),
        Err(cause) => error(&cause),
    }
}

/// 200 without a body, or the error.
pub fn empty_or(outcome: Result<(), InferError>) -> Response<ResponseBody> {
    match outcome {
        Ok(()) => new(StatusCode::OK, JSON, ResponseBody::default()),
        Err(cause) => error(&cause),
    }
}

/// An error of a control request, always labelled as JSON.
pub fn error(error: &InferError) -> Response<ResponseBody> {
    refusal(error, JSON)
}

/// An error of an inference request, labelled by its origin as Triton labels it.
pub fn infer_error(error: &InferError) -> Response<ResponseBody> {
    refusal(error, if error.origin == Origin::Request { JSON } else { PLAIN })
}

fn refusal(error: &InferError, content_type: HeaderValue) -> Response<ResponseBody> {
    let mut response = new(status(error), content_type, error_body(&error.message));
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, SOON);
    }
    response
}

/// Health: 200 or 400, without a body.
pub fn health(good: bool) -> Response<ResponseBody> {
    new(if good { StatusCode::OK } else { StatusCode::BAD_REQUEST }, PLAIN, ResponseBody::default())
}

/// The same response, which says what answers. Not for inferences, whose responses stay as small as they are.
pub fn signed(mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    response.headers_mut().insert(SERVER, PRODUCT);
    response
}

/// 404 for a path that does not exist.
pub fn not_found(hint: &Hint) -> Response<ResponseBody> {
    new(StatusCode::NOT_FOUND, PLAIN, error_body(&hint.behind("Not Found")))
}

/// 405 for a path that exists under another method.
pub fn wrong_method(plain: bool, hint: &Hint) -> Response<ResponseBody> {
    let body = error_body(&hint.behind("Method Not Allowed"));
    new(StatusCode::METHOD_NOT_ALLOWED, if plain { PLAIN } else { JSON }, body)
}

/// The refusal of a call. No client expects Triton's status of it, so what is too large is 413.
pub fn call_error(error: &InferError) -> Response<ResponseBody> {
    let mut response = self::error(error);
    if error.code == Code::TooLarge {
        *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
    }
    response
}

/// 401 for a request without a key of the server, with the challenge that the status asks for.
pub fn unauthenticated(fault: KeyFault) -> Response<ResponseBody> {
    let mut response = error(&InferError::new(Code::Unauthenticated, fault.text()));
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(fault.challenge()));
    response
}

/// 403 for a request that needs a header. Source: Triton's status and text.
pub fn restricted(header: &str) -> Response<ResponseBody> {
    let text = format!("This API is restricted, expecting header '{header}'");
    new(StatusCode::FORBIDDEN, PLAIN, error_body(&text))
}

/// 431 where there are too many headers.
pub fn too_many_headers() -> Response<ResponseBody> {
    new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, PLAIN, ResponseBody::default())
}

/// Refuses a request whose head is against the rules, and ends the connection: what follows may belong to it.
pub fn bad_head(fault: HeadFault) -> Response<ResponseBody> {
    let mut response = new(fault.status(), JSON, error_body(fault.text()));
    announce_close(&mut response);
    response
}

fn status(error: &InferError) -> StatusCode {
    StatusCode::from_u16(error.code.row().http_status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
