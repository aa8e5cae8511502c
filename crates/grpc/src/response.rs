//! The response to a call: one message, or a stream of them, and trailers with its status.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use alipes_net::connection::CutOff;
use alipes_protocol::codec::proto::{Pieces, ResponseMessage};
use alipes_protocol::limits::GRPC_MAX_MESSAGE_BYTES;
use alipes_protocol::trace::Trace;
use alipes_protocol::{Code, InferError, InferResponse};
use alipes_request::budget::{Budget, Charge};
use alipes_stats::trace::sent::Sent;
use bytes::{Bytes, BytesMut};
use http::Response;
use http::header::CONTENT_TYPE;
use http_body::{Body, Frame};
use prost::Message;

use super::compression::{Encoding, GRPC_ENCODING, Press};
use super::message::PREFIX_BYTES;
use super::reflection::ReflectionBody;
use super::status::{self, GRPC};
use super::stream::StreamBody;
use super::watch::WatchBody;

/// The body of a response.
pub(super) enum ResponseBody {
    /// One message, or none.
    Unary(Unary),
    /// As many as the requests have responses.
    Stream(Box<StreamBody>),
    /// One for each change of the server's readiness.
    Watch(Box<WatchBody>),
    /// One for each reflection request.
    Reflection(Box<ReflectionBody>),
}

/// One message at most.
#[derive(Default)]
pub(super) struct Unary {
    pieces: Option<<Pieces as IntoIterator>::IntoIter>,
    /// The status still has to follow as a trailer.
    status_due: bool,
    encoding: Encoding,
    sent: Option<Sent>,
}

impl ResponseBody {
    /// No message: the status stands in the headers.
    pub(super) fn nothing() -> ResponseBody {
        ResponseBody::Unary(Unary::default())
    }

    /// A successful response.
    pub(super) fn message(message: &impl Message) -> ResponseBody {
        ResponseBody::pieces(Pieces::from_buf([framed(message)]))
    }

    /// A successful response whose large tensors are sent as the slices they are.
    ///
    /// # Errors
    ///
    /// A message beyond the limit, which clients would not read.
    pub(super) fn inference(response: &InferResponse) -> Result<ResponseBody, InferError> {
        let message = ResponseMessage::from(response);
        let length = message.encoded_len();
        check_length(length)?;
        Ok(ResponseBody::pieces(message.pieces(&prefix(length))))
    }

    /// A successful response whose message is encoded already.
    ///
    /// # Errors
    ///
    /// A message beyond the limit, which clients would not read.
    pub(super) fn encoded(message: Bytes) -> Result<ResponseBody, InferError> {
        check_length(message.len())?;
        let prefix = Bytes::copy_from_slice(&prefix(message.len()));
        Ok(ResponseBody::pieces(Pieces::from_iter([prefix, message])))
    }

    /// The response that `inference` makes, compressed where that makes it smaller.
    ///
    /// # Errors
    ///
    /// As for `inference`.
    pub(super) async fn compressed(
        response: &InferResponse,
        press: Press,
        budget: &Arc<Budget>,
    ) -> Result<ResponseBody, InferError> {
        let message = ResponseMessage::from(response);
        check_length(message.encoded_len())?;
        let Some(compressed) = press.apply(message.pieces(&[])).await else { return ResponseBody::inference(response) };
        let prefix = Bytes::copy_from_slice(&compressed_prefix(compressed.len()));
        let charge = Charge::unchecked(budget, compressed.len() as u64);
        let pieces = [prefix, charge.over(compressed.into())];
        Ok(ResponseBody::Unary(Unary {
            pieces: Some(Pieces::from_iter(pieces).into_iter()),
            status_due: true,
            encoding: press.encoding,
            ..Unary::default()
        }))
    }

    fn pieces(pieces: Pieces) -> ResponseBody {
        ResponseBody::Unary(Unary { pieces: Some(pieces.into_iter()), status_due: true, ..Unary::default() })
    }

    /// The same response, which records in a trace that sending begins now, and when it ends.
    pub(super) fn traced(mut self, trace: Arc<Trace>) -> ResponseBody {
        if let ResponseBody::Unary(unary) = &mut self {
            unary.sent = Some(Sent::grpc(trace));
        }
        self
    }

    fn encoding(&self) -> Encoding {
        match self {
            ResponseBody::Unary(unary) => unary.encoding,
            ResponseBody::Stream(stream) => stream.encoding(),
            ResponseBody::Watch(_) | ResponseBody::Reflection(_) => Encoding::Identity,
        }
    }

    /// The response with this body.
    pub(super) fn into_response(self) -> Response<ResponseBody> {
        let encoding = self.encoding().header();
        let mut response = Response::new(self);
        response.headers_mut().insert(CONTENT_TYPE, GRPC);
        if let Some(encoding) = encoding {
            response.headers_mut().insert(GRPC_ENCODING, encoding);
        }
        response
    }
}

impl CutOff for ResponseBody {
    /// Only streams wait for models. The others end by themselves once the server drains.
    fn cut_off(&mut self) {
        if let ResponseBody::Stream(stream) = self {
            stream.cut_off();
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            ResponseBody::Unary(unary) => Poll::Ready(unary.next_frame().map(Ok)),
            ResponseBody::Stream(stream) => stream.poll_frame(context).map(|frame| frame.map(Ok)),
            ResponseBody::Watch(watch) => watch.poll_frame(context).map(|frame| frame.map(Ok)),
            ResponseBody::Reflection(reflection) => reflection.poll_frame(context).map(|frame| frame.map(Ok)),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ResponseBody::Unary(unary) => !unary.status_due,
            ResponseBody::Stream(stream) => stream.is_over(),
            ResponseBody::Watch(watch) => watch.is_over(),
            ResponseBody::Reflection(reflection) => reflection.is_over(),
        }
    }
}

impl Unary {
    fn next_frame(&mut self) -> Option<Frame<Bytes>> {
        if let Some(piece) = self.pieces.as_mut().and_then(Iterator::next) {
            return Some(Frame::data(piece));
        }
        std::mem::take(&mut self.status_due).then(|| Frame::trailers(status::success()))
    }
}

/// A message as it stands on the wire.
pub(super) fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut framed = BytesMut::with_capacity(PREFIX_BYTES + length);
    framed.extend_from_slice(&prefix(length));
    message.encode_raw(&mut framed);
    framed.freeze()
}

/// The prefix of a compressed message: a flag, and its length.
pub(super) fn compressed_prefix(length: usize) -> [u8; PREFIX_BYTES] {
    let mut prefix = prefix(length);
    prefix[0] = 1;
    prefix
}

/// The prefix of an uncompressed message: a flag, and its length.
pub(super) fn prefix(length: usize) -> [u8; PREFIX_BYTES] {
    let [a, b, c, d] = (length as u32).to_be_bytes();
    [0, a, b, c, d]
}

/// # Errors
///
/// A message beyond the limit, which clients would not read.
pub(super) fn check_length(length: usize) -> Result<(), InferError> {
    if length <= GRPC_MAX_MESSAGE_BYTES {
        return Ok(());
    }
    let text = format!("response message of {length} bytes exceeds the limit of {GRPC_MAX_MESSAGE_BYTES} bytes");
    Err(InferError::new(Code::TooLarge, text))
}
