//! The bytes of a connection, on their way in and out: counted, and not held up for ever by who does not take them.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::blocked::Blocked;
use super::pulse::Pulse;
use super::socket::{Carrier, Socket};
use super::spelling::Spelling;
use crate::net::http2::Guard;

/// A connection's byte stream.
pub struct Line {
    socket: Socket,
    /// What was read ahead, and comes before what the socket has.
    front: Bytes,
    pulse: Arc<Pulse>,
    /// Hears how headers are spelled, where models are to know.
    spelling: Option<Spelling>,
    /// Looks at the frames, where HTTP/2 is spoken.
    guard: Option<Box<Guard>>,
    blocked: Blocked,
}

impl Line {
    /// A new connection, whose client may take nothing for as long as `patience` says.
    pub fn new(socket: Socket, patience: Option<Duration>) -> Line {
        let blocked = Blocked::new(patience);
        Line { socket, front: Bytes::new(), pulse: Arc::default(), spelling: None, guard: None, blocked }
    }

    /// A plain connection over TCP, without limits.
    pub fn tcp(stream: tokio::net::TcpStream) -> Line {
        Line::new(Socket::Plain(Carrier::Tcp(stream)), None)
    }

    /// What the connection has done.
    pub fn pulse(&self) -> &Arc<Pulse> {
        &self.pulse
    }

    /// The protocol that was agreed on while the encryption was set up.
    pub fn agreed_protocol(&self) -> Option<&[u8]> {
        match &self.socket {
            Socket::Plain(_) => None,
            Socket::Tls(stream) => stream.get_ref().1.alpn_protocol(),
        }
    }

    /// Has the spelling of headers heard, if anybody wants to know.
    #[must_use]
    pub fn heard_by(self, spelling: Option<Spelling>) -> Line {
        Line { spelling, ..self }
    }

    /// Has the frames of HTTP/2 looked at from here on.
    #[must_use]
    pub fn guarded(self, guard: Guard) -> Line {
        Line { guard: Some(Box::new(guard)), spelling: None, ..self }
    }

    /// Puts back what was read ahead.
    pub fn unread(&mut self, bytes: Bytes) {
        debug_assert!(self.front.is_empty(), "{} bytes were put back before", self.front.len());
        self.front = bytes;
    }

    /// Reads until there are so many bytes; fewer where the client sends no more.
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

    /// Tells a client that misbehaves why it is left, if there is room for it.
    #[cold]
    fn leave(&mut self, goodbye: Option<Bytes>, cx: &mut Context<'_>) -> io::Error {
        if let Some(goodbye) = goodbye {
            let _ = Pin::new(&mut self.socket).poll_write(cx, &goodbye);
            let _ = Pin::new(&mut self.socket).poll_flush(cx);
        }
        io::Error::other("the client floods the connection")
    }
}

impl AsyncRead for Line {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let line = self.get_mut();
        let before = into.filled().len();
        if let Some(guard) = &mut line.guard
            && guard.has_had_its_turn()
        {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if line.front.is_empty() {
            let read = Pin::new(&mut line.socket).poll_read(cx, into);
            if let (Poll::Pending, Some(guard)) = (&read, &mut line.guard) {
                guard.end_turn();
            }
            ready!(read)?;
            line.pulse.receive(into.filled().len() - before);
        } else {
            let length = line.front.len().min(into.remaining());
            into.put_slice(&line.front[..length]);
            line.front.advance(length);
        }
        if let Some(spelling) = &line.spelling {
            spelling.hear(&into.filled()[before..]);
        }
        if let Some(guard) = &mut line.guard
            && let Err(flood) = guard.received(&into.filled()[before..])
        {
            let goodbye = guard.goodbye(flood);
            return Poll::Ready(Err(line.leave(goodbye, cx)));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let line = self.get_mut();
        line.spelling.iter().for_each(Spelling::answer);
        let written = Pin::new(&mut line.socket).poll_write(cx, bytes);
        let written = ready!(line.blocked.limit(written, cx))?;
        if let Some(guard) = &mut line.guard {
            guard.sent(&bytes[..written]);
        }
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let line = self.get_mut();
        line.spelling.iter().for_each(Spelling::answer);
        let written = Pin::new(&mut line.socket).poll_write_vectored(cx, slices);
        let written = ready!(line.blocked.limit(written, cx))?;
        if let Some(guard) = &mut line.guard {
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
        let line = self.get_mut();
        let flushed = Pin::new(&mut line.socket).poll_flush(cx);
        line.blocked.limit(flushed, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let line = self.get_mut();
        let over = Pin::new(&mut line.socket).poll_shutdown(cx);
        line.blocked.limit(over, cx)
    }
}
