//! What carries a connection's bytes.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::waiting::Waited;

/// A byte stream.
pub enum Carrier {
    /// Looked after by a runtime.
    Tcp(TcpStream),
    /// Looked after by whoever waits for it.
    Waited(Waited),
}

impl Carrier {
    /// The same for the thread that waits for it.
    ///
    /// # Errors
    /// What the system says.
    pub fn waited(self) -> io::Result<Carrier> {
        match self {
            Carrier::Tcp(stream) => Waited::new(stream.into_std()?.into()).map(Carrier::Waited),
            waited @ Carrier::Waited(_) => Ok(waited),
        }
    }
}

impl AsFd for Carrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Carrier::Tcp(stream) => stream.as_fd(),
            Carrier::Waited(stream) => stream.as_fd(),
        }
    }
}

impl AsyncRead for Carrier {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Carrier::Tcp(stream) => Pin::new(stream).poll_read(cx, into),
            Carrier::Waited(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Carrier {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Carrier::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Carrier::Waited(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Carrier::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Carrier::Waited(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Carrier::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Carrier::Waited(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    #[inline]
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Carrier::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Carrier::Waited(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
