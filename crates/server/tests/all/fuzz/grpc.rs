//! Connections of HTTP/2 to the gRPC endpoint.

use alipes_net::policy::ListenerKind;
use alipes_testkit::corpus;
use alipes_testkit::fuzz::{Choices, Fuzzer, pieces};

use super::{INPUTS, Server};
use crate::memory::http2::{
    DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE,
};
use crate::memory::http2::{frame, header_block};

/// Bytes of an input's end that cut it into pieces.
const CHOICES: usize = 8;

/// Most pieces but the last.
const PIECES: usize = 4;

const HEAD_BYTES: usize = 9;

/// Longest answer beside a few times the bytes that were sent: statistics and descriptors are long.
const LONGEST_ANSWER: usize = 1 << 20;

/// What a client is answered that does not speak HTTP/2.
const REFUSAL: &[u8] = b"HTTP/1.1 426 ";

const SERVICE: &str = "/inference.GRPCInferenceService/";

fn call(number: u32, method: &str, more: &[(&str, &str)], messages: &[&[u8]]) -> Vec<u8> {
    let path = if method.starts_with('/') { method.to_owned() } else { format!("{SERVICE}{method}") };
    let framed =
        messages.iter().flat_map(|message| [&[0], &(message.len() as u32).to_be_bytes()[..], message].concat());
    let headers = [&[("content-type", "application/grpc"), ("te", "trailers")], more].concat();
    let head = frame(HEADERS, END_HEADERS, number, &header_block("POST", &path, &headers));
    [head, frame(DATA, END_STREAM, number, &framed.collect::<Vec<u8>>())].concat()
}

fn connection(frames: &[u8]) -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, &[]), frames].concat()
}

fn seeds() -> Vec<Vec<u8>> {
    let requests = corpus::grpc_requests();
    let infer = requests.iter().step_by(3).map(|request| call(1, "ModelInfer", &[], &[request]));
    let streamed = requests.iter().step_by(7).map(|request| call(1, "ModelStreamInfer", &[], &[request, request]));
    let named = b"\x0a\x04echo";
    let methods = [
        "ServerLive",
        "ServerMetadata",
        "ModelReady",
        "ModelMetadata",
        "ModelConfig",
        "ModelStatistics",
        "RepositoryIndex",
        "RepositoryModelLoad",
        "SystemSharedMemoryStatus",
        "TraceSetting",
        "LogSettings",
        "/grpc.health.v1.Health/Check",
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/none/None",
    ];
    let control = methods.iter().map(|method| call(1, method, &[("grpc-timeout", "9S")], &[&named[..]]));
    let between = [
        frame(PING, 0, 0, &[7; 8]),
        frame(WINDOW_UPDATE, 0, 0, &[0, 0, 1, 0]),
        frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]),
        call(3, "ModelInfer", &[("grpc-encoding", "gzip"), ("grpc-accept-encoding", "gzip")], &[&named[..]]),
    ];
    let frames =
        infer.chain(streamed).chain(control).chain([[call(1, "ServerLive", &[], &[b""]), between.concat()].concat()]);
    frames.map(|frames| Choices::seed(&connection(&frames), &[0xff; CHOICES])).collect()
}

#[test]
fn whatever_a_client_sends_over_grpc_it_is_answered_and_the_server_serves() {
    let server = Server::open(ListenerKind::Grpc);
    let words = ["grpc-timeout", "grpc-encoding", "gzip", "ModelStreamInfer", "ModelInfer", "triton_grpc_error"];
    Fuzzer::new("grpc-connection", seeds()).words(words).inputs(INPUTS).run(move |input| check(&server, input));
}

fn check(server: &Server, input: &[u8]) {
    let (wire, mut choices) = Choices::split(input, CHOICES);
    // A stream may stay open for as long as its client does.
    let (answer, _) = server.answer(&pieces(wire, &mut choices, PIECES));
    server.check_idle();
    assert!(answer.len() <= LONGEST_ANSWER + 8 * wire.len(), "{} bytes", answer.len());
    if answer.starts_with(REFUSAL) {
        assert!(!wire.starts_with(PREFACE), "a client of HTTP/2 is refused");
    } else {
        kinds(&answer);
    }
    let (alive, _) = server.answer(&[&connection(&call(1, "ServerLive", &[], &[b""]))]);
    assert_eq!(kinds(&alive).iter().filter(|kind| **kind == DATA).count(), 1, "the server is not alive");
}

/// The kinds of the frames that the server sent, all but the last of which are whole.
fn kinds(mut answer: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    while let Some((head, rest)) = answer.split_first_chunk::<HEAD_BYTES>() {
        let [a, b, c, kind, ..] = *head;
        assert!(kind <= 9, "a frame of kind {kind}");
        kinds.push(kind);
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        answer = rest.get(length..).unwrap_or_default();
    }
    kinds
}
