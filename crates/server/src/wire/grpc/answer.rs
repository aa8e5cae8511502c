//! The answer to a unary call: one message, and trailers that say that all is well.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use alipes_protocol::codec::proto::inference::ModelInferResponse;
use alipes_protocol::codec::proto::{Pieces, response_pieces};
use alipes_protocol::limits::GRPC_MAX_MESSAGE_BYTES;
use alipes_protocol::{Code, InferError};
use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response};
use http_body::{Body, Frame};
use prost::Message;

use super::message::PREFIX_BYTES;
use super::status::{GRPC, GRPC_STATUS};

/// The body of a response.
#[derive(Default)]
pub(super) struct Answer {
    pieces: Option<<Pieces as IntoIterator>::IntoIter>,
    /// The status still has to follow as a trailer.
    status_due: bool,
}

impl Answer {
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
    pub(super) fn inference(message: ModelInferResponse) -> Result<Answer, InferError> {
        let length = message.encoded_len();
        if length > GRPC_MAX_MESSAGE_BYTES {
            return Err(too_large(length));
        }
        Ok(Answer::pieces(response_pieces(message, &prefix(length))))
    }

    fn pieces(pieces: Pieces) -> Answer {
        Answer { pieces: Some(pieces.into_iter()), status_due: true }
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
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(piece) = self.pieces.as_mut().and_then(Iterator::next) {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if !self.status_due {
            return Poll::Ready(None);
        }
        self.status_due = false;
        let mut trailers = HeaderMap::with_capacity(1);
        trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        !self.status_due
    }
}

/// What stands in front of a message: not compressed, and its length.
fn prefix(length: usize) -> [u8; PREFIX_BYTES] {
    let [a, b, c, d] = (length as u32).to_be_bytes();
    [0, a, b, c, d]
}

fn too_large(length: usize) -> InferError {
    let text = format!("response message of {length} bytes exceeds the limit of {GRPC_MAX_MESSAGE_BYTES} bytes");
    InferError::new(Code::TooLarge, text)
}
