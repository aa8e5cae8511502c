//! The body of a response, which records who must act next: the model or the client.

use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use alipes_protocol::copies;
use alipes_protocol::limits::{HTTP2_LAST_PIECE_BYTES, HTTP2_PIECE_BYTES};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::activity::{Call, NextActor};
use super::ending::CutOff;

/// A response body that records its progress with its call.
pub struct TrackedBody<B> {
    body: B,
    call: Call,
    in_pieces: bool,
    /// The part of a slice that is not sent yet.
    rest: Bytes,
}

impl<B> TrackedBody<B> {
    /// Keeps the call open until the body is dropped.
    #[inline]
    pub fn new(body: B, call: Call) -> TrackedBody<B> {
        TrackedBody { body, call, in_pieces: false, rest: Bytes::new() }
    }

    /// Keeps the call open until the body is dropped, over HTTP/2. The HTTP/2 library holds data until the client opens
    /// a window for it, and does not report for how long. The library receives large slices in pieces, so that it polls
    /// for more at each progress, and their last bytes as a copy, so that the data it holds after its last poll is
    /// small.
    #[inline]
    pub fn in_pieces(body: B, call: Call) -> TrackedBody<B> {
        TrackedBody { in_pieces: true, ..TrackedBody::new(body, call) }
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

impl<B: Body<Data = Bytes> + CutOff + Unpin> Body for TrackedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    #[inline]
    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let tracked = self.get_mut();
        if !tracked.rest.is_empty() {
            tracked.call.set_next_actor(NextActor::Client);
            return Poll::Ready(Some(Ok(Frame::data(tracked.piece()))));
        }
        let mut frame = Pin::new(&mut tracked.body).poll_frame(cx);
        if frame.is_pending() && tracked.call.ending().is_cut() {
            tracked.body.cut_off();
            frame = Pin::new(&mut tracked.body).poll_frame(cx);
        }
        // Until the next poll the client has data to read.
        tracked.call.set_next_actor(if frame.is_ready() { NextActor::Client } else { NextActor::Model });
        if let (Some(record), Poll::Ready(Some(Ok(frame)))) = (tracked.call.record(), &frame) {
            frame.trailers_ref().into_iter().for_each(|trailers| record.ended(trailers));
        }
        match frame {
            Poll::Ready(Some(Ok(frame))) if tracked.in_pieces && is_large(&frame) => {
                Poll::Ready(Some(Ok(tracked.cut(frame))))
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

    use super::super::activity::Activity;
    use super::*;

    impl CutOff for Full<Bytes> {
        fn cut_off(&mut self) {
            panic!("it is always ready");
        }
    }

    async fn pieces(mut body: impl Body<Data = Bytes, Error = Infallible> + Unpin) -> Vec<Bytes> {
        let mut pieces = Vec::new();
        while let Some(Ok(frame)) = body.frame().await {
            pieces.extend(frame.into_data());
        }
        assert!(body.is_end_stream());
        pieces
    }

    #[tokio::test]
    async fn a_large_slice_is_cut_into_pieces_and_the_last_is_a_copy() {
        let activity = Arc::new(Activity::default());
        for length in [0, 1, HTTP2_LAST_PIECE_BYTES, HTTP2_LAST_PIECE_BYTES + 1, 3 * HTTP2_PIECE_BYTES + 5] {
            let whole: Bytes = (0..length).map(|index| index as u8).collect();
            let shared = whole.as_ptr_range();
            let received = pieces(TrackedBody::in_pieces(Full::new(whole.clone()), activity.begin())).await;
            assert_eq!(received.concat(), whole);
            assert!(received.iter().all(|piece| piece.len() <= HTTP2_PIECE_BYTES));
            if length > HTTP2_LAST_PIECE_BYTES {
                let last = received.last().unwrap();
                assert!(last.len() <= HTTP2_LAST_PIECE_BYTES && !shared.contains(&last.as_ptr()));
                assert!(received[..received.len() - 1].iter().all(|piece| shared.contains(&piece.as_ptr())));
            }
            assert!(pieces(TrackedBody::new(Full::new(whole), activity.begin())).await.len() <= 1);
        }
    }
}
