//! An encrypted stream that does not lose a server's last word.
//!
//! A server that refuses a client's certificate says so when the client has begun to write, and closes the connection.
//! The client's next write fails, while the reason lies there unread; and of a write that failed HTTP/2 tells its calls
//! nothing. So a write that fails counts as done, and the next read gives the reason, or the error of the write if
//! there is no reason.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use super::Socket;
use super::refusal::explain;

/// An encrypted stream.
pub struct Encrypted {
    stream: TlsStream<Socket>,
    /// How writing ended.
    broken: Option<io::Error>,
}

impl Encrypted {
    /// What client and server have agreed on.
    pub fn new(stream: TlsStream<Socket>) -> Encrypted {
        Encrypted { stream, broken: None }
    }

    /// What it goes over.
    pub fn carrier(&self) -> &Socket {
        self.stream.get_ref().0
    }

    fn written<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<T>>, done: T) -> Poll<io::Result<T>> {
        let Poll::Ready(Err(error)) = outcome else { return outcome };
        self.broken = Some(error);
        // The task that waits to read may have polled before the write failed; a connection that cannot be written to
        // has an end to read.
        cx.waker().wake_by_ref();
        Poll::Ready(Ok(done))
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = into.filled().len();
        let outcome = ready!(Pin::new(&mut this.stream).poll_read(cx, into));
        let nothing = outcome.is_ok() && into.filled().len() == before;
        Poll::Ready(match this.broken.take() {
            Some(error) if nothing => Err(error),
            broken => {
                this.broken = broken;
                outcome.map_err(explain)
            }
        })
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.broken.is_some() {
            return Poll::Ready(Ok(bytes.len()));
        }
        let outcome = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.written(cx, outcome, bytes.len())
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.broken.is_some() {
            return Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()));
        }
        let outcome = Pin::new(&mut this.stream).poll_write_vectored(cx, slices);
        this.written(cx, outcome, slices.iter().map(|slice| slice.len()).sum())
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.broken.is_some() {
            return Poll::Ready(Ok(()));
        }
        let outcome = Pin::new(&mut this.stream).poll_flush(cx);
        this.written(cx, outcome, ())
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
