//! What carries a connection's bytes: TCP or a Unix socket, plain or encrypted.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

/// A connection that was accepted and has not reached its thread yet.
pub enum Accepted {
    /// Over TCP, from an address.
    Tcp(std::net::TcpStream, IpAddr),
    /// Over a Unix socket.
    Unix(StdUnixStream),
}

impl Accepted {
    /// The address that it comes from; none over a Unix socket.
    pub fn address(&self) -> Option<IpAddr> {
        match self {
            Accepted::Tcp(_, address) => Some(*address),
            Accepted::Unix(_) => None,
        }
    }

    /// The connection on the event loop of this thread.
    ///
    /// # Errors
    ///
    /// The system refuses to watch it.
    pub fn adopt(self) -> io::Result<Carrier> {
        match self {
            Accepted::Tcp(stream, _) => {
                stream.set_nodelay(true)?;
                TcpStream::from_std(stream).map(Carrier::Tcp)
            }
            Accepted::Unix(stream) => UnixStream::from_std(stream).map(Carrier::Unix),
        }
    }
}

/// A plain byte stream.
pub enum Carrier {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a Unix socket.
    Unix(UnixStream),
    /// Between two tasks of one event loop, for tests: no descriptor, so that a paused clock jumps only when both rest.
    #[cfg(debug_assertions)]
    Memory(Box<dyn ByteStream>),
}

impl Carrier {
    /// The client in log lines: its address, without a port.
    pub fn client(&self) -> String {
        match self {
            Carrier::Tcp(stream) => stream.peer_addr().map_or_else(
                |_| "a client that has left".to_owned(),
                |address| address.ip().to_canonical().to_string(),
            ),
            Carrier::Unix(_) => "this machine".to_owned(),
            #[cfg(debug_assertions)]
            Carrier::Memory(_) => "memory".to_owned(),
        }
    }
}

/// A byte stream of a test's own.
#[cfg(debug_assertions)]
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

#[cfg(debug_assertions)]
impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// A byte stream.
pub enum Socket {
    /// As it is.
    Plain(Carrier),
    /// Encrypted.
    // Boxed, since its state is large and most connections have none.
    Tls(Box<TlsStream<Carrier>>),
}

/// Does the same with whatever stream there is.
macro_rules! on {
    ($self:expr, $kind:ident { $($(#[$cfg:meta])? $variant:ident),* }, $stream:ident => $do:expr) => {
        match $self { $($(#[$cfg])? $kind::$variant($stream) => { let $stream = Pin::new($stream); $do })* }
    };
}

macro_rules! byte_stream {
    ($kind:ident { $($(#[$cfg:meta])? $variant:ident),* }) => {
        impl AsyncRead for $kind {
            #[inline]
            fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
                on!(self.get_mut(), $kind { $($(#[$cfg])? $variant),* }, stream => stream.poll_read(cx, into))
            }
        }

        impl AsyncWrite for $kind {
            #[inline]
            fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
                on!(self.get_mut(), $kind { $($(#[$cfg])? $variant),* }, stream => stream.poll_write(cx, bytes))
            }

            #[inline]
            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                slices: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                on!(self.get_mut(), $kind { $($(#[$cfg])? $variant),* }, stream => stream.poll_write_vectored(cx, slices))
            }

            fn is_write_vectored(&self) -> bool {
                match self { $($(#[$cfg])? $kind::$variant(stream) => stream.is_write_vectored()),* }
            }

            #[inline]
            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                on!(self.get_mut(), $kind { $($(#[$cfg])? $variant),* }, stream => stream.poll_flush(cx))
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                on!(self.get_mut(), $kind { $($(#[$cfg])? $variant),* }, stream => stream.poll_shutdown(cx))
            }
        }
    };
}

byte_stream!(Carrier {
    Tcp,
    Unix,
    #[cfg(debug_assertions)]
    Memory
});
byte_stream!(Socket { Plain, Tls });
