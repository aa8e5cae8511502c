//! Fuzzers of what a server may send over HTTP/2: every call ends, with an answer or an error.

use alipes_testkit::fuzz::{Choices, Fuzzer};
use bytes::BufMut;

use super::*;
use crate::message::Verb;
use crate::scripted::{Scripted, without_waiting};
use crate::target::Wire;

/// Bytes of an input's end that say how it arrives, and what is asked.
const CHOICES: usize = 6;

/// Calls on a connection.
const CALLS: usize = 3;

pub(super) fn framed(kind: u8, flags: u8, call: u32, content: &[u8]) -> Vec<u8> {
    let mut buffer = BytesMut::new();
    FrameHead { length: content.len(), kind, flags, call }.write(&mut buffer);
    buffer.extend_from_slice(content);
    buffer.to_vec()
}

/// What servers say: settings, answers, refusals, GOAWAY frames.
pub(super) fn connections() -> Vec<Vec<u8>> {
    let head = b"\x88\x40\x0ccontent-type\x10application/grpc";
    let trailers = b"\x00\x0bgrpc-status\x010";
    let refusal = b"\x88\x00\x0bgrpc-status\x015\x00\x0cgrpc-message\x06no%20x";
    let answer = |call: u32| {
        let last = frames::END_HEADERS | frames::END_STREAM;
        [
            framed(frames::HEADERS, frames::END_HEADERS, call, head),
            framed(frames::DATA, 0, call, b"\0\0\0\0\x05hello"),
            framed(frames::HEADERS, last, call, trailers),
        ]
        .concat()
    };
    let settings = framed(frames::SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0, 0, 5, 0, 0, 64, 0]);
    let rest = [
        framed(frames::SETTINGS, frames::ACK, 0, b""),
        framed(frames::PING, 0, 0, b"12345678"),
        framed(frames::WINDOW_UPDATE, 0, 0, &[0, 1, 0, 0]),
        framed(frames::DATA, frames::PADDED, 1, b"\x02\0\0\0\0\x01x\0\0"),
    ];
    vec![
        [settings.clone(), answer(1), answer(3), answer(5)].concat(),
        [settings.clone(), rest.concat(), answer(1)].concat(),
        [settings.clone(), framed(frames::HEADERS, frames::END_HEADERS | frames::END_STREAM, 1, refusal)].concat(),
        [settings.clone(), framed(frames::GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]), answer(1)].concat(),
        [
            settings.clone(),
            framed(frames::HEADERS, 0, 1, &head[..5]),
            framed(frames::CONTINUATION, frames::END_HEADERS, 1, &head[5..]),
        ]
        .concat(),
        [settings, framed(frames::RST_STREAM, 0, 1, &[0, 0, 0, 7])].concat(),
    ]
}

#[test]
fn whatever_a_server_sends_every_call_ends() {
    let seeds = connections().into_iter().map(|wire| Choices::seed(&wire, &[0xff, 0xff, 0, 0, 0, 0]));
    Fuzzer::new("client-http2", seeds).words(["grpc-status", "grpc-message", "application/grpc"]).run(check_calls);
}

fn check_calls(input: &[u8]) {
    let (wire, mut choices) = Choices::split(input, CHOICES);
    let piece = 1 + choices.below(1 << 16);
    let target = Target::new("localhost:1", Wire::Grpc, Vec::new(), Duration::ZERO).expect("an address");
    let mut connection = UnaryConnection::new(Scripted::whole(wire, piece));
    let mut answers = 0;
    for _ in 0..CALLS {
        let mut message = BytesMut::from(&[0][..]);
        let length = choices.below(1 << 16);
        message.put_u32(length as u32);
        message.put_bytes(7, length);
        let pieces = vec![message.freeze()];
        let (path, headers) = ("Echo".into(), Vec::new());
        let request =
            Outgoing { path, verb: Verb::Post, json_length: None, pieces, infer: true, sequence: None, headers };
        let outcome = without_waiting(connection.ask(&target, request, None));
        answers += outcome.iter().map(Bytes::len).sum::<usize>();
        if let Err(error) = outcome {
            assert!(!error.message.is_empty() && error.message.len() <= 1024 + 3 * wire.len());
            break;
        }
        if !without_waiting(connection.is_alive()) {
            break;
        }
    }
    assert!(answers <= wire.len(), "more was answered than was sent");
    check_sent(&connection.socket.sent());
}

/// What a client sends is a preface and whole frames, whatever it was told about their size.
fn check_sent(sent: &[u8]) {
    let Some(mut rest) = sent.strip_prefix(frames::PREFACE) else { return assert!(sent.is_empty()) };
    while let Some(head) = rest.first_chunk::<HEAD_BYTES>().map(FrameHead::read) {
        let Some(behind) = rest.get(HEAD_BYTES + head.length..) else { return };
        assert!(head.kind <= frames::CONTINUATION);
        rest = behind;
    }
}
