//! What the library's own server says to real calls, recorded.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use tokio::task::LocalSet;

use super::shared::SharedConnection;
use super::tests::{serve, target};
use crate::socket::Arrival;

/// A socket that keeps what is read from it.
struct Recorder {
    socket: DuplexStream,
    read: Rc<RefCell<Vec<u8>>>,
}

impl Arrival for Recorder {}

impl AsyncRead for Recorder {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let (recorder, before) = (self.get_mut(), into.filled().len());
        let outcome = Pin::new(&mut recorder.socket).poll_read(cx, into);
        recorder.read.borrow_mut().extend_from_slice(&into.filled()[before..]);
        outcome
    }
}

impl AsyncWrite for Recorder {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}

/// The server's side of connections on which calls of each kind are answered, refused and ended, and some of which end
/// with these messages.
pub fn exchanges(messages: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let record = |calls: &[(&str, &[u8])]| LocalSet::new().block_on(&runtime, exchange(calls));
    let mut all = vec![
        record(&[("Echo", b"x"), ("Echo", b""), ("Refuse", b"y"), ("Echo", b"z")]),
        record(&[("Echo", b"x"), ("Reset", b"y"), ("Echo", &[7; 1000])]),
        record(&[("Echo", b"x"), ("GoAway", b"y")]),
    ];
    all.extend(messages.iter().take(3).map(|message| record(&[("Echo", message), ("Refuse", b""), ("Echo", message)])));
    all
}

async fn exchange(calls: &[(&str, &[u8])]) -> Vec<u8> {
    let (socket, other) = duplex(64 * 1024);
    let read = Rc::<RefCell<Vec<u8>>>::default();
    let (connection, driver) = SharedConnection::new(Recorder { socket, read: read.clone() });
    tokio::spawn(serve(other));
    tokio::task::spawn_local(driver);
    let target = target();
    for (method, message) in calls {
        let mut framed = BytesMut::from(&[0][..]);
        framed.put_u32(message.len() as u32);
        framed.extend_from_slice(message);
        // What is refused is recorded as well.
        let _: Result<Bytes, _> = connection.ask(&target, method, framed.freeze()).await.map(|received| received.body);
    }
    read.take()
}
