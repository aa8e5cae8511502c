//! Calls against the library's own server, over memory.

use std::time::Duration;

use bytes::{BufMut, Bytes};
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use tokio::io::{DuplexStream, duplex};

use super::*;
use crate::error::Kind;
use crate::message::Verb;
use crate::target::Wire;

const PIPE_BYTES: usize = 64 * 1024;

pub(super) fn target() -> Target {
    Target::new("localhost:1", Wire::Grpc, vec![("x-word".into(), "yes".into())], Duration::ZERO).unwrap()
}

/// A message behind its head.
pub(super) fn framed(message: &[u8]) -> Bytes {
    let mut wire = vec![0];
    wire.put_u32(message.len() as u32);
    wire.extend_from_slice(message);
    wire.into()
}

fn request(method: &str, message: &[u8]) -> Outgoing {
    let pieces = framed(message).chunks(100_000).map(Bytes::copy_from_slice).collect();
    let (path, headers) = (method.to_owned(), Vec::new());
    Outgoing { path, verb: Verb::Post, json_length: None, pieces, infer: false, sequence: None, headers }
}

/// A server that says each message back, and does what other methods are named for.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(socket: S) {
    let mut builder = server::Builder::new();
    builder.initial_window_size(100_000).max_frame_size(32 * 1024);
    let mut connection = builder.handshake::<_, Bytes>(socket).await.unwrap();
    while let Some(Ok((request, answer))) = connection.accept().await {
        if request.uri().path().ends_with("GoAway") {
            connection.graceful_shutdown();
        }
        tokio::spawn(handle(request, answer));
    }
}

async fn handle(request: Request<RecvStream>, mut answer: SendResponse<Bytes>) {
    assert_eq!(request.headers()["x-word"], "yes");
    assert_eq!(request.uri().authority().unwrap().as_str(), "localhost:1");
    let method = request.uri().path().rsplit('/').next().unwrap().to_owned();
    if method == "Refuse" {
        let head = Response::builder().header("grpc-status", "5").header("grpc-message", "no%20such model");
        answer.send_response(head.body(()).unwrap(), true).unwrap();
        return;
    }
    let own = request.headers().get("x-own").map(|value| framed(value.as_bytes()).to_vec());
    let mut body = request.into_body();
    if method == "Hang" {
        std::future::pending::<()>().await;
    }
    if method == "Reset" {
        answer.send_reset(Reason::REFUSED_STREAM);
        return;
    }
    let mut message = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece.unwrap();
        body.flow_control().release_capacity(piece.len()).unwrap();
        message.extend_from_slice(&piece);
    }
    let head = Response::builder().header("content-type", "application/grpc").header("x-new", &method);
    let mut stream = answer.send_response(head.body(()).unwrap(), false).unwrap();
    stream.send_data(own.unwrap_or(message).into(), false).unwrap();
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    stream.send_trailers(trailers).unwrap();
}

fn connect() -> UnaryConnection<DuplexStream> {
    let (own, other) = duplex(PIPE_BYTES);
    tokio::spawn(serve(other));
    UnaryConnection::new(own)
}

async fn ask(
    connection: &mut UnaryConnection<DuplexStream>,
    method: &str,
    message: &[u8],
) -> Result<Bytes, ClientError> {
    connection.ask(&target(), request(method, message), Some(Duration::from_secs(60))).await
}

#[tokio::test]
async fn calls_of_all_sizes_go_over_one_connection() {
    let mut connection = connect();
    for (round, size) in [0, 1, 64, 20_000, 3_000_000, 5, 12_000_000, 9_000_000, 7].into_iter().enumerate() {
        let message: Vec<u8> = (0..size).map(|byte| (byte % 251) as u8).collect();
        let method = format!("Echo{}", round % 3);
        assert!(connection.is_alive().await);
        assert!(ask(&mut connection, &method, &message).await.unwrap() == message, "{size} bytes");
    }
}

#[tokio::test]
async fn a_refused_call_keeps_the_connection() {
    let mut connection = connect();
    for _ in 0..3 {
        let error = ask(&mut connection, "Refuse", b"x").await.unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (Kind::Refused(5), "no such model"));
        assert!(connection.is_alive().await && !connection.is_spent());
        assert_eq!(ask(&mut connection, "Echo", b"y").await.unwrap(), "y");
    }
}

#[tokio::test]
async fn headers_of_one_call_go_with_that_call_alone() {
    let mut connection = connect();
    let with = |name: &str, value: &str| Outgoing {
        headers: vec![(name.to_owned(), value.to_owned())],
        ..request("Echo", b"x")
    };
    assert_eq!(connection.ask(&target(), with("X-Own", "a"), None).await.unwrap(), "a");
    assert_eq!(ask(&mut connection, "Echo", b"x").await.unwrap(), "x");
    let error = connection.ask(&target(), with("grpc-timeout", "1S"), None).await.unwrap_err();
    assert!(error.message.contains("grpc-timeout"), "{error}");
    assert_eq!(connection.ask(&target(), with("x-own", "b"), None).await.unwrap(), "b");
}

#[tokio::test]
async fn a_call_that_is_reset_is_broken() {
    let error = ask(&mut connect(), "Reset", b"x").await.unwrap_err();
    assert_eq!(error.kind, Kind::Broken);
    assert!(error.message.contains("localhost:1") && error.message.contains("refused"), "{error}");
}

#[tokio::test]
async fn after_a_goaway_the_call_is_answered_and_no_other_is_made() {
    let mut connection = connect();
    assert_eq!(ask(&mut connection, "GoAway", b"x").await.unwrap(), "x");
    assert!(connection.is_spent() || !connection.is_alive().await);
}

#[tokio::test]
async fn a_peer_that_is_gone_or_not_grpc_is_an_error() {
    let (own, other) = duplex(PIPE_BYTES);
    drop(other);
    assert_eq!(ask(&mut UnaryConnection::new(own), "Echo", b"x").await.unwrap_err().kind, Kind::Broken);
    let (own, mut other) = duplex(PIPE_BYTES);
    other.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    let error = ask(&mut UnaryConnection::new(own), "Echo", b"x").await.unwrap_err();
    assert!(error.kind == Kind::Broken && error.message.contains("HTTP/2"), "{error}");
}

#[tokio::test]
async fn pings_are_answered_with_the_next_call() {
    let (own, mut other) = duplex(PIPE_BYTES);
    let mut connection = UnaryConnection::new(own);
    let mut bytes = BytesMut::new();
    frames::settings(&[], &mut bytes);
    FrameHead { length: 8, kind: frames::PING, flags: 0, call: 0 }.write(&mut bytes);
    bytes.extend_from_slice(b"12345678");
    other.write_all(&bytes).await.unwrap();
    assert!(connection.is_alive().await);
    let mut pong = BytesMut::new();
    frames::acknowledgement(frames::PING, b"12345678", &mut pong);
    assert!(connection.outgoing.ends_with(&pong));
    FrameHead { length: 3, kind: frames::PING, flags: 0, call: 0 }.write(&mut bytes);
    other.write_all(&bytes[bytes.len() - HEAD_BYTES..]).await.unwrap();
    other.write_all(b"123").await.unwrap();
    assert!(!connection.is_alive().await);
}

#[tokio::test]
async fn headers_may_come_in_parts_and_not_without_end() {
    for (parts, whole) in [(3, true), (200, false)] {
        let (own, mut other) = duplex(1 << 20);
        let mut bytes = BytesMut::new();
        frames::settings(&[], &mut bytes);
        let mut kind = frames::HEADERS;
        for part in 0..parts {
            let flags = if whole && part == parts - 1 { frames::END_HEADERS } else { 0 };
            let text: Vec<u8> = [&[0, 1, b'a', 126][..], &[b'x'; 126]].concat();
            let text = if part == 0 { [&[0x88][..], &text].concat() } else { text };
            let text = text.repeat(if part == 0 { 1 } else { 5 });
            let last = if kind == frames::HEADERS { frames::END_STREAM } else { 0 };
            FrameHead { length: text.len(), kind, flags: flags | last, call: 1 }.write(&mut bytes);
            bytes.extend_from_slice(&text);
            kind = frames::CONTINUATION;
        }
        other.write_all(&bytes).await.unwrap();
        let error = ask(&mut UnaryConnection::new(own), "Echo", b"x").await.unwrap_err();
        let word = if whole { "without a status" } else { "headers" };
        assert!(error.message.contains(word), "{error}");
    }
}

#[tokio::test]
async fn no_frame_is_longer_than_its_head_can_say() {
    let (own, mut other) = duplex(PIPE_BYTES);
    let mut connection = UnaryConnection::new(own);
    let mut bytes = BytesMut::new();
    frames::settings(&[(frames::MAX_FRAME_SIZE, u32::MAX)], &mut bytes);
    other.write_all(&bytes).await.unwrap();
    assert!(connection.is_alive().await);
    assert_eq!(connection.frame, frames::LARGEST_FRAME_BYTES);
}
