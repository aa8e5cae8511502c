//! The pace of a connection: how many bytes it may move before others on its thread have their turn.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use alipes_protocol::limits::{FURTHER_TURN_BYTES, TURN_BYTES};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::yield_now;

/// A byte stream that gives way after a number of bytes, where its peer would keep the thread busy for as long as it
/// likes.
pub struct Paced<S> {
    stream: S,
    /// Bytes that the stream may still move in this turn.
    left: usize,
}

impl<S> Paced<S> {
    /// A stream at the beginning of its turn.
    pub fn new(stream: S) -> Paced<S> {
        Paced { stream, left: TURN_BYTES }
    }

    /// The stream itself.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// Ready where the stream has to give way now: the task is woken once others have had the thread, and their sockets
    /// were looked at.
    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.left > 0 {
            return Poll::Pending;
        }
        self.left = FURTHER_TURN_BYTES;
        // Woken in another way, the task would be run again before any socket is looked at.
        let _ = pin!(yield_now()).poll(cx);
        Poll::Ready(())
    }

    fn count<T>(&mut self, moved: Poll<T>, bytes: impl FnOnce(&T) -> usize) -> Poll<T> {
        self.left = match &moved {
            Poll::Ready(outcome) => self.left.saturating_sub(bytes(outcome)),
            Poll::Pending => TURN_BYTES,
        };
        moved
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let paced = self.get_mut();
        if paced.poll_over(cx).is_ready() {
            return Poll::Pending;
        }
        let before = into.filled().len();
        let read = poll_read_at_most(Pin::new(&mut paced.stream), cx, into, paced.left);
        paced.count(read, |_| into.filled().len() - before)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let paced = self.get_mut();
        if paced.poll_over(cx).is_ready() {
            return Poll::Pending;
        }
        let written = Pin::new(&mut paced.stream).poll_write(cx, &bytes[..bytes.len().min(paced.left)]);
        paced.count(written, written_bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let paced = self.get_mut();
        if paced.poll_over(cx).is_ready() {
            return Poll::Pending;
        }
        let (stream, left) = (Pin::new(&mut paced.stream), paced.left);
        let written = match slices {
            // A reader that keeps up would have the system take all of a slice at once, however large it is.
            [first, ..] if first.len() > left => stream.poll_write(cx, &first[..left]),
            slices => stream.poll_write_vectored(cx, &slices[..that_fit(slices, left)]),
        };
        paced.count(written, written_bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

fn written_bytes(written: &io::Result<usize>) -> usize {
    written.as_ref().map_or(0, |bytes| *bytes)
}

/// Reads at most so many bytes, whatever room there is.
fn poll_read_at_most<S: AsyncRead>(
    stream: Pin<&mut S>,
    cx: &mut Context<'_>,
    into: &mut ReadBuf<'_>,
    most: usize,
) -> Poll<io::Result<()>> {
    if into.remaining() <= most {
        return stream.poll_read(cx, into);
    }
    let mut part = ReadBuf::new(into.initialize_unfilled_to(most));
    ready!(stream.poll_read(cx, &mut part))?;
    let read = part.filled().len();
    into.advance(read);
    Poll::Ready(Ok(()))
}

/// How many slices are written at once: the first, and those that fit behind it into so many bytes.
fn that_fit(slices: &[IoSlice<'_>], most: usize) -> usize {
    let mut bytes = 0;
    slices
        .iter()
        .take_while(|slice| {
            bytes += slice.len();
            bytes <= most
        })
        .count()
        .max(slices.len().min(1))
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, repeat, sink};

    use super::*;

    /// How often a task is polled until it ends.
    async fn polls(work: impl Future) -> usize {
        let (mut work, mut polls) = (pin!(work), 0);
        poll_fn(|cx| {
            polls += 1;
            work.as_mut().poll(cx).map(drop)
        })
        .await;
        polls
    }

    #[tokio::test]
    async fn a_stream_that_is_always_ready_gives_way() {
        let mut endless = Paced::new(repeat(7));
        let mut bytes = vec![0; 10 * TURN_BYTES];
        let read = async {
            // The room of one read does not count, but what a turn may have.
            for piece in bytes.chunks_mut(5 * TURN_BYTES) {
                endless.read_exact(piece).await.unwrap();
            }
        };
        let turns = 1 + 9 * TURN_BYTES / FURTHER_TURN_BYTES;
        assert_eq!(polls(read).await, turns);
        assert!(bytes.iter().all(|byte| *byte == 7));
        let mut hungry = Paced::new(sink());
        assert_eq!(polls(hungry.write_all(&bytes)).await, turns);
        let mut hungry = Paced::new(sink());
        let slices: Vec<_> = bytes.chunks(FURTHER_TURN_BYTES / 4).map(IoSlice::new).collect();
        let mut left = &slices[..];
        let written = polls(async {
            while !left.is_empty() {
                let written = poll_fn(|cx| Pin::new(&mut hungry).poll_write_vectored(cx, left)).await.unwrap();
                assert!((1..=TURN_BYTES).contains(&written));
                left = &left[written / (FURTHER_TURN_BYTES / 4)..];
            }
        });
        assert_eq!(written.await, turns);
    }

    #[tokio::test]
    async fn a_stream_that_had_to_wait_may_move_more_again() {
        let (near, mut far) = duplex(3 * TURN_BYTES);
        let mut near = Paced::new(near);
        let mut bytes = vec![0; TURN_BYTES + FURTHER_TURN_BYTES];
        for _ in 0..2 {
            far.write_all(&bytes).await.unwrap();
            let read = async {
                near.read_exact(&mut bytes).await.unwrap();
            };
            assert_eq!(polls(read).await, 2);
            let waited = poll_fn(|cx| Poll::Ready(Pin::new(&mut near).poll_read(cx, &mut ReadBuf::new(&mut [0]))));
            // It gives way first, and then finds nothing.
            assert!(waited.await.is_pending());
            let waited = poll_fn(|cx| Poll::Ready(Pin::new(&mut near).poll_read(cx, &mut ReadBuf::new(&mut [0]))));
            assert!(waited.await.is_pending());
        }
    }

    #[tokio::test]
    async fn bytes_arrive_whole_and_in_order() {
        let sent: Vec<u8> = (0..5 * TURN_BYTES).map(|index| (index / 7) as u8).collect();
        let (near, far) = duplex(1 << 20);
        let (mut near, mut far) = (Paced::new(near), Paced::new(far));
        let mut received = Vec::new();
        let (written, read) = tokio::join!(
            async {
                near.write_all(&sent).await?;
                near.shutdown().await
            },
            far.read_to_end(&mut received)
        );
        written.unwrap();
        assert_eq!(read.unwrap(), sent.len());
        assert!(received == sent);
    }

    #[test]
    fn the_first_slice_is_always_written() {
        let (large, small, empty) = (vec![0; 200], [0; 10], []);
        let of = |slices: &[&[u8]]| that_fit(&slices.iter().map(|slice| IoSlice::new(slice)).collect::<Vec<_>>(), 100);
        assert_eq!(of(&[]), 0);
        assert_eq!(of(&[&large, &small]), 1);
        assert_eq!(of(&[&small, &large]), 1);
        assert_eq!(of(&[&empty, &small, &small]), 3);
    }
}
