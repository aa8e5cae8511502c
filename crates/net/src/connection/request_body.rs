//! The body of a request, which has to make progress.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use alipes_protocol::limits::{HTTP_MAX_SMALL_CHUNKS, HTTP_SMALL_CHUNK_BYTES, STALL_BYTES};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

/// A request's body, as HTTP and gRPC read it.
///
/// It fails where fewer than `STALL_BYTES` arrive within the stall time-out, which is measured only while a reader
/// waits. A chunked body also fails where very many of its chunks are small.
pub struct RequestBody {
    body: Source,
    received: usize,
    /// Pieces received, where each may be a chunk.
    chunks: Option<usize>,
    stall_timeout: Option<Duration>,
    stall: Option<Stall>,
}

/// Where a body comes from.
enum Source {
    /// A connection.
    Connection(hyper::body::Incoming),
    /// This server, which has all of it: that of a graph's step.
    Whole(Option<Bytes>),
}

struct Stall {
    timer: Pin<Box<Sleep>>,
    /// Bytes received when the timer was set.
    received: usize,
}

/// Why a body ended early.
#[derive(Debug)]
pub enum BodyError {
    /// The connection broke, or the bytes are no body.
    Connection(hyper::Error),
    /// Fewer than `STALL_BYTES` arrived in this time.
    Stalled(Duration),
    /// The body has too many small chunks.
    SmallChunks,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodyError::Connection(error) => error.fmt(f),
            BodyError::Stalled(time) => {
                let seconds = time.as_secs_f64();
                write!(f, "fewer than {STALL_BYTES} bytes came in {seconds} s, see --stall-timeout-secs")
            }
            BodyError::SmallChunks => write!(
                f,
                "Chunked request body exceeds maximum of {HTTP_MAX_SMALL_CHUNKS} non-empty chunks. Send fewer or larger \
                 HTTP chunks."
            ),
        }
    }
}

impl std::error::Error for BodyError {}

impl RequestBody {
    /// A body with a stall time-out; none sets no limit.
    #[inline]
    pub fn new(body: hyper::body::Incoming, stall_timeout: Option<Duration>) -> RequestBody {
        RequestBody { body: Source::Connection(body), received: 0, chunks: None, stall_timeout, stall: None }
    }

    /// A body that is here.
    pub fn whole(body: Bytes) -> RequestBody {
        let body = Source::Whole(Some(body).filter(|body| !body.is_empty()));
        RequestBody { body, received: 0, chunks: None, stall_timeout: None, stall: None }
    }

    /// The same body with its chunks counted, as over HTTP/1.
    #[must_use]
    #[inline]
    pub fn with_counted_chunks(self) -> RequestBody {
        let chunks = self.size_hint().exact().is_none().then_some(0);
        RequestBody { chunks, ..self }
    }

    /// The same body without a stall time-out: the client of a stream may be silent between messages.
    #[must_use]
    pub fn without_stall_timeout(self) -> RequestBody {
        RequestBody { stall_timeout: None, ..self }
    }

    /// Ready where a stall time-out passed in which fewer than `STALL_BYTES` arrived.
    #[cold]
    fn poll_stalled(&mut self, timeout: Duration, cx: &mut Context<'_>) -> Poll<()> {
        let received = self.received;
        let stall = self
            .stall
            .get_or_insert_with(|| Stall { timer: Box::pin(sleep_until(Instant::now() + timeout)), received });
        loop {
            ready!(stall.timer.as_mut().poll(cx));
            if received - stall.received < STALL_BYTES {
                return Poll::Ready(());
            }
            stall.received = received;
            stall.timer.as_mut().reset(Instant::now() + timeout);
        }
    }
}

/// Whether chunks are too many for their bytes.
fn are_too_small(chunks: usize, bytes: usize) -> bool {
    chunks > HTTP_MAX_SMALL_CHUNKS && bytes / HTTP_SMALL_CHUNK_BYTES < chunks
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    #[inline]
    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let request = self.get_mut();
        let body = match &mut request.body {
            Source::Connection(body) => body,
            Source::Whole(whole) => return Poll::Ready(whole.take().map(|whole| Ok(Frame::data(whole)))),
        };
        match Pin::new(body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                request.received += frame.data_ref().map_or(0, Bytes::len);
                if let Some(chunks) = &mut request.chunks {
                    *chunks += 1;
                    if are_too_small(*chunks, request.received) {
                        return Poll::Ready(Some(Err(BodyError::SmallChunks)));
                    }
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(BodyError::Connection(error)))),
            Poll::Pending => {
                let Some(timeout) = request.stall_timeout else { return Poll::Pending };
                request.poll_stalled(timeout, cx).map(|()| Some(Err(BodyError::Stalled(timeout))))
            }
        }
    }

    #[inline]
    fn is_end_stream(&self) -> bool {
        match &self.body {
            Source::Connection(body) => body.is_end_stream(),
            Source::Whole(whole) => whole.is_none(),
        }
    }

    #[inline]
    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Source::Connection(body) => body.size_hint(),
            Source::Whole(whole) => SizeHint::with_exact(whole.as_ref().map_or(0, Bytes::len) as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_small_chunks_is_limited_and_that_of_others_is_not() {
        assert!(!are_too_small(HTTP_MAX_SMALL_CHUNKS, 0));
        let most = HTTP_MAX_SMALL_CHUNKS + 1;
        assert!(are_too_small(most, most * HTTP_SMALL_CHUNK_BYTES - 1));
        assert!(!are_too_small(most, most * HTTP_SMALL_CHUNK_BYTES));
    }
}
