//! The body of an answer, watched: whose turn it is, the model's or the client's.

use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use alipes_protocol::copies;
use alipes_protocol::limits::{HTTP2_LAST_PIECE_BYTES, HTTP2_PIECE_BYTES};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::pulse::{Call, Turn};

/// A body that tells its call how it is taken off.
pub struct Answering<B> {
    body: B,
    call: Call,
    in_pieces: bool,
    /// What is still to be given of a slice.
    rest: Bytes,
}

impl<B> Answering<B> {
    /// Keeps the call open until the body is gone.
    #[inline]
    pub fn new(body: B, call: Call) -> Answering<B> {
        Answering { body, call, in_pieces: false, rest: Bytes::new() }
    }

    /// The same over HTTP/2, whose library keeps what it was given until the client opens a window for it, and does not
    /// say for how long. It is given large slices in pieces, so that it asks for more whenever something moves, and
    /// their last bytes as a copy: what may stay behind with it, once it asks for nothing more, is small.
    #[inline]
    pub fn in_pieces(body: B, call: Call) -> Answering<B> {
        Answering { in_pieces: true, ..Answering::new(body, call) }
    }

    /// The next piece of the rest.
    fn piece(&mut self) -> Bytes {
        let left = self.rest.len();
        if left <= HTTP2_LAST_PIECE_BYTES {
            copies::note(left);
            return Bytes::copy_from_slice(&mem::take(&mut self.rest));
        }
        self.rest.split_to((left - HTTP2_LAST_PIECE_BYTES).min(HTTP2_PIECE_BYTES))
    }

    #[cold]
    fn cut(&mut self, frame: Frame<Bytes>) -> Frame<Bytes> {
        match frame.into_data() {
            Ok(data) => {
                self.rest = data;
                Frame::data(self.piece())
            }
            Err(frame) => frame,
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Answering<B> {
    type Data = Bytes;
    type Error = B::Error;

    #[inline]
    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let answering = self.get_mut();
        if !answering.rest.is_empty() {
            answering.call.give_turn(Turn::Client);
            return Poll::Ready(Some(Ok(Frame::data(answering.piece()))));
        }
        let frame = Pin::new(&mut answering.body).poll_frame(cx);
        // Until it is asked again, it is the client who does not take what there is.
        answering.call.give_turn(if frame.is_ready() { Turn::Client } else { Turn::Model });
        match frame {
            Poll::Ready(Some(Ok(frame))) if answering.in_pieces && is_large(&frame) => {
                Poll::Ready(Some(Ok(answering.cut(frame))))
            }
            frame => frame,
        }
    }

    #[inline]
    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    #[inline]
    fn size_hint(&self) -> SizeHint {
        if self.rest.is_empty() { self.body.size_hint() } else { SizeHint::default() }
    }
}

#[inline]
fn is_large(frame: &Frame<Bytes>) -> bool {
    frame.data_ref().is_some_and(|data| data.len() > HTTP2_LAST_PIECE_BYTES)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use http_body_util::{BodyExt, Full};

    use super::super::pulse::Pulse;
    use super::*;

    async fn pieces(mut body: impl Body<Data = Bytes, Error = Infallible> + Unpin) -> Vec<Bytes> {
        let mut pieces = Vec::new();
        while let Some(Ok(frame)) = body.frame().await {
            pieces.extend(frame.into_data());
        }
        assert!(body.is_end_stream());
        pieces
    }

    #[tokio::test]
    async fn a_large_slice_comes_in_pieces_of_which_the_last_holds_nothing_of_the_others() {
        let pulse = Arc::new(Pulse::default());
        for length in [0, 1, HTTP2_LAST_PIECE_BYTES, HTTP2_LAST_PIECE_BYTES + 1, 3 * HTTP2_PIECE_BYTES + 5] {
            let whole: Bytes = (0..length).map(|index| index as u8).collect();
            let kept = whole.as_ptr_range();
            let given = pieces(Answering::in_pieces(Full::new(whole.clone()), pulse.begin())).await;
            assert_eq!(given.concat(), whole);
            assert!(given.iter().all(|piece| piece.len() <= HTTP2_PIECE_BYTES));
            if length > HTTP2_LAST_PIECE_BYTES {
                let last = given.last().unwrap();
                assert!(last.len() <= HTTP2_LAST_PIECE_BYTES && !kept.contains(&last.as_ptr()));
                assert!(given[..given.len() - 1].iter().all(|piece| kept.contains(&piece.as_ptr())));
            }
            assert!(pieces(Answering::new(Full::new(whole), pulse.begin())).await.len() <= 1);
        }
    }
}
