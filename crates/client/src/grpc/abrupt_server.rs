//! A server, for tests, that ends a call in the moment in which it answers: all its frames leave in one write.

use std::time::Duration;

use bytes::Bytes;
use h2::client::{Connection, SendRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::{call, connect};
use crate::socket::Socket;
use crate::target::{Target, Wire};

/// An HTTP/2 frame of the first call.
pub fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

/// What a server says that sends these bytes as a body, and resets the call behind them if it is to.
pub fn response(body: &[u8], reset: bool) -> Vec<u8> {
    let settings = frame(4, 0, 0, &[]);
    let head = frame(1, 4, 1, &[0x88]); // `:status: 200`
    let end = if reset { frame(3, 0, 1, &8u32.to_be_bytes()) } else { Vec::new() };
    [settings, head, frame(0, 0, 1, body), end].concat()
}

/// A message of a stream that is an error with this text.
pub fn failure(text: &str) -> Vec<u8> {
    let message = [&[1 << 3 | 2, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    [&[0][..], &u32::try_from(message.len()).unwrap().to_be_bytes(), &message].concat()
}

/// A client's connection to a server that waits for a request, says this, and hangs up once the client has read it.
pub async fn connect(response: Vec<u8>) -> (SendRequest<Bytes>, Connection<Socket, Bytes>) {
    let (own, mut other) = UnixStream::pair().unwrap();
    tokio::spawn(async move {
        let mut heard = vec![0; 1 << 16];
        assert!(other.read(&mut heard).await.unwrap() > 0);
        other.write_all(&response).await.unwrap();
        other.shutdown().await.unwrap();
        while other.read(&mut heard).await.is_ok_and(|count| count > 0) {}
    });
    connect::handshake(Socket::Unix(own)).await.unwrap()
}

/// The head of a stream.
pub fn head() -> http::Request<()> {
    let target = Target::new("localhost:1", Wire::Grpc, Vec::new(), Duration::ZERO).unwrap();
    call::head(&target, "ModelStreamInfer", None).unwrap()
}
