//! The byte stream of a connection: counted, with its HTTP/2 frames checked and its stalled writes timed out.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::activity::Activity;
use super::socket::{Carrier, Socket};
use super::spelling::Spelling;
use super::stall_timer::StallTimer;
use crate::http2::FrameGuard;

/// A connection's byte stream.
pub struct TransportStream {
    socket: Socket,
    /// Bytes that were read ahead, delivered before those of the socket.
    front: Bytes,
    activity: Arc<Activity>,
    /// Records the spelling of header names, where models see it.
    spelling: Option<Spelling>,
    /// Checks the frames of HTTP/2.
    guard: Option<Box<FrameGuard>>,
    stall_timer: StallTimer,
}

impl TransportStream {
    /// A new connection, closed where its client reads nothing for the stall time-out.
    pub fn new(socket: Socket, stall_timeout: Option<Duration>) -> TransportStream {
        let stall_timer = StallTimer::new(stall_timeout);
        TransportStream {
            socket,
            front: Bytes::new(),
            activity: Arc::default(),
            spelling: None,
            guard: None,
            stall_timer,
        }
    }

    /// A plain connection over TCP, without limits.
    pub fn tcp(stream: tokio::net::TcpStream) -> TransportStream {
        TransportStream::new(Socket::Plain(Carrier::Tcp(stream)), None)
    }

    /// The counts of the connection.
    pub fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// The application protocol that the TLS handshake negotiated.
    pub fn negotiated_protocol(&self) -> Option<&[u8]> {
        match &self.socket {
            Socket::Plain(_) => None,
            Socket::Tls(stream) => stream.get_ref().1.alpn_protocol(),
        }
    }

    /// Records the spelling of header names, where it is wanted.
    #[must_use]
    pub fn with_spelling(self, spelling: Option<Spelling>) -> TransportStream {
        TransportStream { spelling, ..self }
    }

    /// Checks the frames of HTTP/2 from here on.
    #[must_use]
    pub fn with_frame_guard(self, guard: FrameGuard) -> TransportStream {
        TransportStream { guard: Some(Box::new(guard)), spelling: None, ..self }
    }

    /// Puts back bytes that were read ahead.
    pub fn put_back(&mut self, bytes: Bytes) {
        debug_assert!(self.front.is_empty(), "{} bytes were put back before", self.front.len());
        self.front = bytes;
    }

    /// Reads until `into` holds `length` bytes; fewer where the client sends no more.
    ///
    /// # Errors
    ///
    /// The connection breaks.
    pub async fn read_ahead(&mut self, into: &mut BytesMut, length: usize) -> io::Result<()> {
        while into.len() < length {
            if self.read_buf(into).await? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Sends a flooding client the reason why its connection is closed, where the socket has room for it.
    #[cold]
    fn close_flooded(&mut self, goaway: Option<Bytes>, cx: &mut Context<'_>) -> io::Error {
        if let Some(goaway) = goaway {
            let _ = Pin::new(&mut self.socket).poll_write(cx, &goaway);
            let _ = Pin::new(&mut self.socket).poll_flush(cx);
        }
        io::Error::other("the client floods the connection")
    }
}

impl AsyncRead for TransportStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let transport = self.get_mut();
        let before = into.filled().len();
        if let Some(guard) = &mut transport.guard
            && guard.has_used_quantum()
        {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if transport.front.is_empty() {
            let read = Pin::new(&mut transport.socket).poll_read(cx, into);
            if let (Poll::Pending, Some(guard)) = (&read, &mut transport.guard) {
                guard.begin_quantum();
            }
            ready!(read)?;
            transport.activity.receive(into.filled().len() - before);
        } else {
            let length = transport.front.len().min(into.remaining());
            into.put_slice(&transport.front[..length]);
            transport.front.advance(length);
        }
        if let Some(spelling) = &transport.spelling {
            spelling.record(&into.filled()[before..]);
        }
        if let Some(guard) = &mut transport.guard
            && let Err(flood) = guard.received(&into.filled()[before..])
        {
            let goaway = guard.goaway(flood);
            return Poll::Ready(Err(transport.close_flooded(goaway, cx)));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TransportStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let transport = self.get_mut();
        transport.spelling.iter().for_each(Spelling::end_request);
        let written = Pin::new(&mut transport.socket).poll_write(cx, bytes);
        let written = ready!(transport.stall_timer.limit(written, cx))?;
        if let Some(guard) = &mut transport.guard {
            guard.sent(&bytes[..written]);
        }
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let transport = self.get_mut();
        transport.spelling.iter().for_each(Spelling::end_request);
        let written = Pin::new(&mut transport.socket).poll_write_vectored(cx, slices);
        let written = ready!(transport.stall_timer.limit(written, cx))?;
        if let Some(guard) = &mut transport.guard {
            let mut left = written;
            for slice in slices {
                let length = slice.len().min(left);
                guard.sent(&slice[..length]);
                left -= length;
            }
        }
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let transport = self.get_mut();
        let flushed = Pin::new(&mut transport.socket).poll_flush(cx);
        transport.stall_timer.limit(flushed, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let transport = self.get_mut();
        let over = Pin::new(&mut transport.socket).poll_shutdown(cx);
        transport.stall_timer.limit(over, cx)
    }
}
