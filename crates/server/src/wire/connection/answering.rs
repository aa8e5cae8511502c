//! The body of an answer, watched: whose turn it is, the model's or the client's.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};

use super::pulse::Call;

/// A body that tells its call how it is taken off.
pub struct Answering<B> {
    body: B,
    call: Call,
}

impl<B> Answering<B> {
    /// Keeps the call open until the body is gone.
    #[inline]
    pub fn new(body: B, mut call: Call) -> Answering<B> {
        call.offer(true);
        Answering { body, call }
    }
}

impl<B: Body + Unpin> Body for Answering<B> {
    type Data = B::Data;
    type Error = B::Error;

    #[inline]
    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let answering = self.get_mut();
        let frame = Pin::new(&mut answering.body).poll_frame(cx);
        // Until it is asked again, it is the client who does not take what there is.
        answering.call.offer(frame.is_ready());
        answering.call.take();
        frame
    }

    #[inline]
    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    #[inline]
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
