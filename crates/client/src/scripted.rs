//! A socket for fuzzers: its server says what it says, whatever it is asked, and takes as much as it is told to.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::socket::Arrival;

/// The socket; each clone is the same one, so that a test can look at what a connection has taken over.
#[derive(Clone, Default)]
pub struct Scripted {
    state: Rc<RefCell<Script>>,
}

#[derive(Default)]
struct Script {
    arrived: Bytes,
    /// Nothing more will arrive.
    ended: bool,
    /// Most bytes of a read.
    piece: usize,
    /// Bytes that it takes from now on.
    takes: usize,
    sent: Vec<u8>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Scripted {
    /// A socket whose server sends these bytes and no others, and takes everything.
    pub fn whole(incoming: &[u8], piece: usize) -> Scripted {
        let socket = Scripted::default();
        socket.arrive(incoming, piece);
        socket.end();
        socket
    }

    /// Lets bytes arrive; one read gets so many of them at most.
    pub fn arrive(&self, bytes: &[u8], piece: usize) {
        let mut state = self.state.borrow_mut();
        state.arrived = [&state.arrived[..], bytes].concat().into();
        state.piece = piece;
        state.reader.take().into_iter().for_each(Waker::wake);
    }

    /// Lets it take so many further bytes.
    pub fn accept(&self, bytes: usize) {
        let mut state = self.state.borrow_mut();
        state.takes = state.takes.saturating_add(bytes);
        state.writer.take().into_iter().for_each(Waker::wake);
    }

    /// Ends the connection behind what has arrived; everything that is still to be sent is taken.
    pub fn end(&self) {
        self.state.borrow_mut().ended = true;
        self.arrive(b"", usize::MAX);
        self.accept(usize::MAX);
    }

    /// What was sent.
    pub fn sent(&self) -> Vec<u8> {
        self.state.borrow().sent.clone()
    }
}

impl Arrival for Scripted {}

impl AsyncRead for Scripted {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let mut state = self.state.borrow_mut();
        let count = state.piece.min(state.arrived.len()).min(into.remaining());
        if count == 0 && !state.ended {
            state.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        into.put_slice(&state.arrived.split_to(count));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Scripted {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let mut state = self.state.borrow_mut();
        let count = state.takes.min(bytes.len());
        if count == 0 && !bytes.is_empty() {
            state.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        state.takes -= count;
        state.sent.extend_from_slice(&bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// What a future gives that never has to wait.
pub fn without_waiting<T>(work: impl Future<Output = T>) -> T {
    match std::pin::pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits, though the server has said everything"),
    }
}
