//! The answer to a call: one message, or a stream of them, and trailers that say how it went.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use alipes_protocol::codec::proto::{Pieces, ResponseMessage};
use alipes_protocol::limits::GRPC_MAX_MESSAGE_BYTES;
use alipes_protocol::{Code, InferError, InferResponse};
use bytes::{Bytes, BytesMut};
use http::Response;
use http::header::CONTENT_TYPE;
use http_body::{Body, Frame};
use prost::Message;

use super::message::PREFIX_BYTES;
use super::status::{self, GRPC};
use super::stream::StreamAnswer;

/// The body of a response.
pub(super) enum Answer {
    /// One message, or none.
    Unary(Unary),
    /// As many as the requests have responses.
    Stream(Box<StreamAnswer>),
}

/// One message at most.
#[derive(Default)]
pub(super) struct Unary {
    pieces: Option<<Pieces as IntoIterator>::IntoIter>,
    /// The status still has to follow as a trailer.
    status_due: bool,
}

impl Answer {
    /// No message at all: the status stands in the headers.
    pub(super) fn nothing() -> Answer {
        Answer::Unary(Unary::default())
    }

    /// A successful answer.
    pub(super) fn message(message: &impl Message) -> Answer {
        let length = message.encoded_len();
        let mut framed = BytesMut::with_capacity(PREFIX_BYTES + length);
        framed.extend_from_slice(&prefix(length));
        message.encode_raw(&mut framed);
        Answer::pieces(Pieces::from_buf([framed.freeze()]))
    }

    /// A successful answer whose large tensors leave as the slices they are.
    ///
    /// # Errors
    ///
    /// A message beyond the limit, which clients would not read.
    pub(super) fn inference(response: &InferResponse) -> Result<Answer, InferError> {
        let message = ResponseMessage::from(response);
        let length = message.encoded_len();
        check_length(length)?;
        Ok(Answer::pieces(message.pieces(&prefix(length))))
    }

    fn pieces(pieces: Pieces) -> Answer {
        Answer::Unary(Unary { pieces: Some(pieces.into_iter()), status_due: true })
    }

    /// The response around the answer.
    pub(super) fn into_response(self) -> Response<Answer> {
        let mut response = Response::new(self);
        response.headers_mut().insert(CONTENT_TYPE, GRPC);
        response
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Answer::Unary(unary) => Poll::Ready(unary.next_frame().map(Ok)),
            Answer::Stream(stream) => stream.poll_frame(context).map(|frame| frame.map(Ok)),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Answer::Unary(unary) => !unary.status_due,
            Answer::Stream(stream) => stream.is_over(),
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

/// What stands in front of a message: not compressed, and its length.
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
