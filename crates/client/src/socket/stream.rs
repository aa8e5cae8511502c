//! One byte stream, whatever it goes over.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::encrypted::Encrypted;
use super::timed::{Arrival, Timed};
use crate::waiting::Waited;

/// A byte stream.
pub enum Socket {
    /// Read and written by the thread that waits for it, which sleeps in the read or write.
    Waited(Waited),
    /// Over TCP.
    Tcp(TcpStream),
    /// Over TCP, with the moments at which bytes came.
    Timed(Timed),
    /// Over a Unix socket.
    Unix(UnixStream),
    /// Encrypted, over one of the others.
    // Boxed, since its state is large and most connections have none.
    Tls(Box<Encrypted>),
}

impl Socket {
    /// This socket as one that its thread waits for. An encrypted socket stays as it is: one of its turns may take
    /// several reads.
    ///
    /// # Errors
    /// What the system says.
    pub fn waited(self) -> io::Result<Socket> {
        let socket = match self {
            Socket::Tcp(stream) => stream.into_std()?.into(),
            Socket::Timed(stream) => stream.into_inner().into_std()?.into(),
            Socket::Unix(stream) => stream.into_std()?.into(),
            other @ (Socket::Waited(_) | Socket::Tls(_)) => return Ok(other),
        };
        Waited::new(socket).map(Socket::Waited)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Waited(stream) => stream.as_fd(),
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Timed(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
            Socket::Tls(stream) => stream.carrier().as_fd(),
        }
    }
}

impl Arrival for Socket {
    fn arrived(&self) -> Option<Instant> {
        match self {
            Socket::Timed(stream) => stream.arrived(),
            Socket::Tls(stream) => stream.carrier().arrived(),
            Socket::Waited(_) | Socket::Tcp(_) | Socket::Unix(_) => None,
        }
    }
}

impl AsyncRead for Socket {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Waited(stream) => Pin::new(stream).poll_read(cx, into),
            Socket::Tcp(stream) => Pin::new(stream).poll_read(cx, into),
            Socket::Timed(stream) => Pin::new(stream).poll_read(cx, into),
            Socket::Unix(stream) => Pin::new(stream).poll_read(cx, into),
            Socket::Tls(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Socket {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Waited(stream) => Pin::new(stream).poll_write(cx, bytes),
            Socket::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Socket::Timed(stream) => Pin::new(stream).poll_write(cx, bytes),
            Socket::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Socket::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Waited(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Socket::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Socket::Timed(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Socket::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Socket::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Socket::Waited(stream) => stream.is_write_vectored(),
            Socket::Tcp(stream) => stream.is_write_vectored(),
            Socket::Timed(stream) => stream.is_write_vectored(),
            Socket::Unix(stream) => stream.is_write_vectored(),
            Socket::Tls(stream) => stream.is_write_vectored(),
        }
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Waited(stream) => Pin::new(stream).poll_flush(cx),
            Socket::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Socket::Timed(stream) => Pin::new(stream).poll_flush(cx),
            Socket::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Socket::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Waited(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Timed(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
