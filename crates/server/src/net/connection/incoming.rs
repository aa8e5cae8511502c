//! The body of a request that has to make progress.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use alipes_protocol::limits::{HTTP_MAX_SMALL_CHUNKS, HTTP_SMALL_CHUNK_BYTES, STALL_BYTES};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

/// A request's body, as every handler of either door reads it.
///
/// It fails where next to nothing comes for a while. The time is measured while somebody waits for more of it, and not
/// for what comes in one piece. A chunked body fails, too, where it comes in very many chunks that are small.
pub struct Incoming {
    body: hyper::body::Incoming,
    received: usize,
    /// Pieces that have come, where each may be a chunk.
    chunks: Option<usize>,
    patience: Option<Duration>,
    stall: Option<Stall>,
}

struct Stall {
    timer: Pin<Box<Sleep>>,
    /// What had come when the timer was set.
    received: usize,
}

/// Why a body ended early.
#[derive(Debug)]
pub enum Broken {
    /// The connection broke, or what came is no body.
    Connection(hyper::Error),
    /// Next to nothing came for so long.
    Stalled(Duration),
    /// What came, came in too many chunks.
    Crumbs,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Connection(error) => error.fmt(f),
            Broken::Stalled(time) => {
                let seconds = time.as_secs_f64();
                write!(f, "fewer than {STALL_BYTES} bytes came in {seconds} s, see --stall-timeout-secs")
            }
            Broken::Crumbs => write!(
                f,
                "it comes in more than {HTTP_MAX_SMALL_CHUNKS} chunks of fewer than {HTTP_SMALL_CHUNK_BYTES} bytes on \
                 average"
            ),
        }
    }
}

impl std::error::Error for Broken {}

impl Incoming {
    /// A body that may stall for so long; none sets no limit.
    #[inline]
    pub fn new(body: hyper::body::Incoming, patience: Option<Duration>) -> Incoming {
        Incoming { body, received: 0, chunks: None, patience, stall: None }
    }

    /// The same body where it may come in chunks, as over HTTP/1.
    #[must_use]
    #[inline]
    pub fn in_chunks(self) -> Incoming {
        let chunks = self.body.size_hint().exact().is_none().then_some(0);
        Incoming { chunks, ..self }
    }

    /// The same body where its client may be silent between messages, as in a stream.
    #[must_use]
    pub fn without_hurry(self) -> Incoming {
        Incoming { patience: None, ..self }
    }

    /// Ready where the time is over and next to nothing has come in it.
    #[cold]
    fn poll_stalled(&mut self, patience: Duration, cx: &mut Context<'_>) -> Poll<()> {
        let received = self.received;
        let stall = self
            .stall
            .get_or_insert_with(|| Stall { timer: Box::pin(sleep_until(Instant::now() + patience)), received });
        loop {
            ready!(stall.timer.as_mut().poll(cx));
            if received - stall.received < STALL_BYTES {
                return Poll::Ready(());
            }
            stall.received = received;
            stall.timer.as_mut().reset(Instant::now() + patience);
        }
    }
}

/// Whether so many chunks are too many for so many bytes.
fn is_crumbs(chunks: usize, bytes: usize) -> bool {
    chunks > HTTP_MAX_SMALL_CHUNKS && bytes / HTTP_SMALL_CHUNK_BYTES < chunks
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = Broken;

    #[inline]
    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let incoming = self.get_mut();
        match Pin::new(&mut incoming.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                incoming.received += frame.data_ref().map_or(0, Bytes::len);
                if let Some(chunks) = &mut incoming.chunks {
                    *chunks += 1;
                    if is_crumbs(*chunks, incoming.received) {
                        return Poll::Ready(Some(Err(Broken::Crumbs)));
                    }
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(Broken::Connection(error)))),
            Poll::Pending => {
                let Some(patience) = incoming.patience else { return Poll::Pending };
                incoming.poll_stalled(patience, cx).map(|()| Some(Err(Broken::Stalled(patience))))
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_small_chunks_are_taken_and_no_more_and_any_number_of_others() {
        assert!(!is_crumbs(HTTP_MAX_SMALL_CHUNKS, 0));
        let most = HTTP_MAX_SMALL_CHUNKS + 1;
        assert!(is_crumbs(most, most * HTTP_SMALL_CHUNK_BYTES - 1));
        assert!(!is_crumbs(most, most * HTTP_SMALL_CHUNK_BYTES));
    }
}
