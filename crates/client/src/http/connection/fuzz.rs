//! A fuzzer of answers over HTTP/1.1: whatever a server sends, each request is answered or fails, and alike in any
//! pieces.

use std::time::Duration;

use alipes_testkit::fuzz::{Choices, Fuzzer};

use super::*;
use crate::message::Verb;
use crate::scripted::{Scripted, without_waiting};
use crate::target::Wire;

/// Bytes of an input's end that say how it arrives.
const CHOICES: usize = 3;

/// Requests on a connection.
const REQUESTS: usize = 4;

/// What servers answer, one behind the other.
fn seeds() -> Vec<Vec<u8>> {
    let plain = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_vec();
    let chunked =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n".to_vec();
    let trailers = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx: y\r\n\r\n".to_vec();
    let refused = b"HTTP/1.1 404 Not Found\r\nContent-Length: 25\r\n\r\n{\"error\":\"no such model\"}".to_vec();
    let interim = [&b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"[..], &plain].concat();
    let empty = b"HTTP/1.1 204 No Content\r\n\r\n".to_vec();
    let closing = b"HTTP/1.1 500 Oops\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno".to_vec();
    let until_closed = b"HTTP/1.0 200 OK\r\n\r\nall that comes".to_vec();
    let json = r#"{"model_name":"m","outputs":[{"name":"Y","datatype":"INT32","shape":[1],"parameters":{"binary_data_size":4}}]}"#;
    let binary = format!(
        "HTTP/1.1 200 OK\r\nInference-Header-Content-Length: {}\r\nContent-Length: {}\r\n\r\n{json}\x07\0\0\0",
        json.len(),
        json.len() + 4
    );
    let large =
        [&b"HTTP/1.1 200 OK\r\nContent-Length: 20000\r\nInference-Header-Content-Length: 7\r\n\r\n"[..], &[7; 3000]];
    vec![
        [plain.clone(), chunked.clone(), trailers, refused.clone()].concat(),
        [interim, empty, plain, closing].concat(),
        [chunked, until_closed].concat(),
        [refused, binary.into_bytes()].concat(),
        large.concat(),
    ]
}

#[test]
fn whatever_a_server_answers_each_request_ends_alike_in_any_pieces() {
    let seeds = seeds().into_iter().map(|wire| Choices::seed(&wire, &[0xff, 0xff, 0]));
    let words = ["Content-Length", "Transfer-Encoding", "chunked", "Connection", "keep-alive", "HTTP/1.1 100 \r\n\r\n"];
    Fuzzer::new("client-http", seeds).words(words).run(check);
}

/// How a request ends.
type Outcome = Result<Vec<u8>, String>;

fn check(input: &[u8]) {
    let (wire, mut choices) = Choices::split(input, CHOICES);
    let piece = 1 + choices.below(1 << 12);
    let outcomes = exchanged(wire, piece);
    // What comes with an answer that nobody has asked for ends the connection, so that the first request counts alone.
    assert_eq!(outcomes.first(), exchanged(wire, usize::MAX).first(), "a request ends otherwise in pieces");
    let answers = outcomes.iter().flatten().map(Vec::len).sum::<usize>();
    assert!(answers <= wire.len(), "more was answered than was sent");
    for error in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        assert!(!error.is_empty() && error.len() <= 1024 + 3 * wire.len());
    }
    if choices.flip() {
        check_inference(wire, piece);
    }
}

/// All requests that a load would send over such a connection; the last of them is one that fails or ends it.
fn exchanged(wire: &[u8], piece: usize) -> Vec<Outcome> {
    let mut connection = HttpConnection { socket: Scripted::whole(wire, piece), buffer: BytesMut::new() };
    let mut outcomes = Vec::new();
    while outcomes.len() < REQUESTS {
        let (outcome, keep) = without_waiting(connection.exchange(b"GET / HTTP/1.1\r\n\r\n"));
        outcomes.push(outcome.map(|received| received.body.to_vec()).map_err(|error| error.message));
        assert!(connection.buffer.capacity() <= 4 * (wire.len() + BUFFER_BYTES), "it takes more than was sent");
        if !keep {
            break;
        }
        assert!(connection.buffer.is_empty(), "what nobody asked for would be taken for the next answer");
    }
    outcomes
}

/// Sends an inference over such a connection, whose call reads tensors out of the answer.
fn check_inference(wire: &[u8], piece: usize) {
    let target = Target::new("localhost:1", Wire::Http, Vec::new(), Duration::ZERO).expect("an address");
    let mut connection = HttpConnection { socket: Scripted::whole(wire, piece), buffer: BytesMut::new() };
    let request = Outgoing {
        path: "/v2".into(),
        verb: Verb::Post,
        json_length: None,
        pieces: vec!["x".into()],
        infer: true,
        sequence: None,
        headers: Vec::new(),
    };
    let (outcome, keep) = without_waiting(connection.ask(&target, request));
    assert!(!keep || connection.buffer.is_empty());
    assert!(outcome.is_ok() || outcome.is_err_and(|error| !error.message.is_empty()));
}
