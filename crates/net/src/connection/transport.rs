//! The byte stream of a connection: counted, with its HTTP/2 frames checked and its stalled writes timed out.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::activity::Activity;
use super::paced::Paced;
use super::socket::{Carrier, Socket};
use super::spelling::Spelling;
use super::stall_timer::StallTimer;
use crate::http2::{Flood, FrameGuard};
use crate::probation::{Hold, Origin};

/// A connection's byte stream.
pub struct TransportStream {
    socket: Paced<Socket>,
    /// Bytes that were read ahead, delivered before those of the socket.
    front: Bytes,
    activity: Arc<Activity>,
    /// Records the spelling of header names, where models see it.
    spelling: Option<Spelling>,
    /// Checks the frames of HTTP/2.
    guard: Option<Box<FrameGuard>>,
    /// Where the connection comes from, where that matters.
    origin: Option<Origin>,
    /// The address of its client; none over a Unix socket.
    peer: Option<IpAddr>,
    /// Set once the client has flooded the connection.
    flooded: Option<Option<Hold>>,
    stall_timer: StallTimer,
}

impl TransportStream {
    /// A new connection, closed where its client reads nothing for the stall time-out.
    pub fn new(socket: Socket, stall_timeout: Option<Duration>) -> TransportStream {
        let stall_timer = StallTimer::new(stall_timeout);
        TransportStream {
            socket: Paced::new(socket),
            front: Bytes::new(),
            activity: Arc::default(),
            spelling: None,
            guard: None,
            origin: None,
            peer: None,
            flooded: None,
            stall_timer,
        }
    }

    /// A plain connection over TCP, without limits.
    pub fn tcp(stream: tokio::net::TcpStream) -> TransportStream {
        TransportStream::new(Socket::Plain(Carrier::Tcp(stream)), None)
    }

    /// The same connection, whose origin answers for floods.
    #[must_use]
    pub fn with_origin(self, origin: Origin) -> TransportStream {
        TransportStream { origin: Some(origin), ..self }
    }

    /// Where the connection comes from, where that matters.
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// The same connection, of a client with this address.
    #[must_use]
    pub fn with_peer(self, peer: Option<IpAddr>) -> TransportStream {
        TransportStream { peer, ..self }
    }

    /// The address of the client; none over a Unix socket.
    pub fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    /// The same connection with counts that others read too.
    #[must_use]
    pub fn counted_by(self, activity: Arc<Activity>) -> TransportStream {
        TransportStream { activity, ..self }
    }

    /// The counts of the connection.
    pub fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// The application protocol that the TLS handshake negotiated.
    pub fn negotiated_protocol(&self) -> Option<&[u8]> {
        match self.socket.get_ref() {
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

    /// Fills `into` with what the connection may have in this turn, or returns the flood that its bytes are part of.
    /// What the client has sent beyond the turn is kept for the next one.
    fn poll_checked(
        &mut self,
        guard: &mut FrameGuard,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<Option<Flood>>> {
        ready!(guard.poll_turn(cx));
        if !self.front.is_empty() {
            let length = self.front.len().min(into.remaining());
            let checked = guard.received(&self.front[..length]);
            let passed = checked.unwrap_or(length);
            into.put_slice(&self.front[..passed]);
            self.front.advance(passed);
            return Poll::Ready(Ok(checked.err()));
        }
        let before = into.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(cx, into))?;
        let read = &into.filled()[before..];
        self.activity.receive(read.len());
        let checked = guard.received(read);
        let passed = checked.unwrap_or(read.len());
        if passed < read.len() {
            self.front = Bytes::copy_from_slice(&read[passed..]);
            into.set_filled(before + passed);
        }
        Poll::Ready(Ok(checked.err()))
    }

    /// Sends a flooding client the reason why its connection is closed, where the socket has room for it.
    #[cold]
    fn close_flooded(
        &mut self,
        goaway: Option<Bytes>,
        hold: Option<Hold>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(goaway) = goaway {
            let _ = Pin::new(&mut self.socket).poll_write(cx, &goaway);
            let _ = Pin::new(&mut self.socket).poll_flush(cx);
        }
        poll_flooded(self.flooded.insert(hold), cx)
    }
}

/// The end of a flooded connection, once it has been held long enough.
#[cold]
fn poll_flooded(hold: &mut Option<Hold>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
    if let Some(hold) = hold {
        ready!(hold.poll(cx));
    }
    Poll::Ready(Err(io::Error::other("the client floods the connection")))
}

impl AsyncRead for TransportStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let transport = self.get_mut();
        if let Some(hold) = &mut transport.flooded {
            return poll_flooded(hold, cx);
        }
        if let Some(mut guard) = transport.guard.take() {
            let checked = transport.poll_checked(&mut guard, cx, into);
            let guard = transport.guard.insert(guard);
            return match ready!(checked)? {
                None => Poll::Ready(Ok(())),
                Some(flood) => {
                    let (goaway, hold) = (guard.goaway(flood), guard.penalise(flood));
                    transport.close_flooded(goaway, hold, cx)
                }
            };
        }
        let before = into.filled().len();
        if transport.front.is_empty() {
            ready!(Pin::new(&mut transport.socket).poll_read(cx, into))?;
            transport.activity.receive(into.filled().len() - before);
        } else {
            let length = transport.front.len().min(into.remaining());
            into.put_slice(&transport.front[..length]);
            transport.front.advance(length);
        }
        if let Some(spelling) = &transport.spelling {
            spelling.record(&into.filled()[before..]);
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
