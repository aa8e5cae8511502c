//! The pace of a connection: how many bytes it may move before others on its thread have their turn.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use alipes_protocol::limits::{TURN_BYTES, WRITE_BYTES};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::yield_now;

/// A byte stream that gives way after `TURN_BYTES`, where its peer would keep the thread busy for as long as it likes.
pub struct Paced<S> {
    stream: S,
    /// Bytes that were moved since the stream last gave way, or had to wait.
    moved: usize,
}

impl<S> Paced<S> {
    /// A stream at the beginning of its turn.
    pub fn new(stream: S) -> Paced<S> {
        Paced { stream, moved: 0 }
    }

    /// The stream itself.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// Ready where the stream has to give way now: the task is woken once others have had the thread, and their sockets
    /// were looked at.
    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.moved < TURN_BYTES {
            return Poll::Pending;
        }
        self.moved = 0;
        // Woken in another way, the task would be run again before any socket is looked at.
        let _ = pin!(yield_now()).poll(cx);
        Poll::Ready(())
    }

    fn count<T>(&mut self, moved: Poll<T>, bytes: impl FnOnce(&T) -> usize) -> Poll<T> {
        self.moved = match &moved {
            Poll::Ready(outcome) => self.moved + bytes(outcome),
            Poll::Pending => 0,
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
        let read = Pin::new(&mut paced.stream).poll_read(cx, into);
        paced.count(read, |_| into.filled().len() - before)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let paced = self.get_mut();
        if paced.poll_over(cx).is_ready() {
            return Poll::Pending;
        }
        let written = Pin::new(&mut paced.stream).poll_write(cx, &bytes[..bytes.len().min(WRITE_BYTES)]);
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
        let stream = Pin::new(&mut paced.stream);
        let written = match slices {
            // A reader that keeps up would have the system take all of a slice at once, however large it is.
            [first, ..] if first.len() > WRITE_BYTES => stream.poll_write(cx, &first[..WRITE_BYTES]),
            slices => stream.poll_write_vectored(cx, &slices[..that_fit(slices)]),
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

/// How many slices are written at once: the first, and those that fit behind it.
fn that_fit(slices: &[IoSlice<'_>]) -> usize {
    let mut bytes = 0;
    slices
        .iter()
        .take_while(|slice| {
            bytes += slice.len();
            bytes <= WRITE_BYTES
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
            for piece in bytes.chunks_mut(WRITE_BYTES) {
                endless.read_exact(piece).await.unwrap();
            }
        };
        assert_eq!(polls(read).await, 10);
        let mut hungry = Paced::new(sink());
        assert_eq!(polls(hungry.write_all(&bytes)).await, 10);
        let slices: Vec<_> = bytes.chunks(WRITE_BYTES / 4).map(IoSlice::new).collect();
        let mut left = &slices[..];
        let written = polls(async {
            while !left.is_empty() {
                let written = poll_fn(|cx| Pin::new(&mut hungry).poll_write_vectored(cx, left)).await.unwrap();
                assert!((1..=WRITE_BYTES).contains(&written));
                left = &left[written / (WRITE_BYTES / 4)..];
            }
        });
        assert!(written.await >= 9);
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
        let (large, small, empty) = (vec![0; 2 * WRITE_BYTES], [0; 10], []);
        let of = |slices: &[&[u8]]| that_fit(&slices.iter().map(|slice| IoSlice::new(slice)).collect::<Vec<_>>());
        assert_eq!(of(&[]), 0);
        assert_eq!(of(&[&large, &small]), 1);
        assert_eq!(of(&[&small, &large]), 1);
        assert_eq!(of(&[&empty, &small, &small]), 3);
    }
}
