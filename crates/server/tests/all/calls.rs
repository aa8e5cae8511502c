//! What the head of a gRPC call says: how long its client waits, how its messages are compressed; and what becomes of a
//! request whose client no longer waits. The client is a bare HTTP/2 one, since others keep deadlines themselves.

use std::time::{Duration, Instant};

use crate::common::{Echo, GrpcServer, Puppet, TEST_TIMEOUT, model, request};
use alipes_net::phase::Phase;
use alipes_protocol::codec::proto::health::{HealthCheckRequest, HealthCheckResponse};
use alipes_protocol::codec::proto::inference::ModelInferRequest;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::TcpStream;
use tokio::time::timeout;

const INFER: &str = "/inference.GRPCInferenceService/ModelInfer";
const STREAM: &str = "/inference.GRPCInferenceService/ModelStreamInfer";
const WATCH: &str = "/grpc.health.v1.Health/Watch";

type Client = SendRequest<Full<Bytes>>;

async fn connect(server: &GrpcServer) -> Client {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (client, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    client
}

fn framed(message: &impl Message) -> Bytes {
    let message = message.encode_to_vec();
    let mut wire = BytesMut::from(&[0][..]);
    wire.extend_from_slice(&(message.len() as u32).to_be_bytes());
    wire.extend_from_slice(&message);
    wire.freeze()
}

async fn call(client: &mut Client, path: &str, headers: &[(&str, &str)], body: Bytes) -> Response<Incoming> {
    let mut request = Request::post(path).header("content-type", "application/grpc").header("te", "trailers");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = client.send_request(request.body(Full::new(body)).unwrap());
    timeout(TEST_TIMEOUT, answer).await.expect("an answer in time").unwrap()
}

/// The status of a call and its text, wherever they stand.
async fn status(response: Response<Incoming>) -> (String, String) {
    let (head, body) = response.into_parts();
    let trailers = timeout(TEST_TIMEOUT, body.collect()).await.expect("an end in time").unwrap().trailers().cloned();
    let text = |headers: &HeaderMap, name| headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
    let headers = if head.headers.contains_key("grpc-status") { head.headers } else { trailers.unwrap_or_default() };
    (text(&headers, "grpc-status"), text(&headers, "grpc-message"))
}

async fn until(fact: impl Fn() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !fact() {
        assert!(Instant::now() < deadline, "it did not happen");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn ask(id: &str) -> Bytes {
    framed(&request("puppet", id, 4))
}

#[tokio::test]
async fn a_deadline_removes_a_waiting_request_from_the_queue() {
    let puppet = Puppet::new("puppet", false);
    let server = GrpcServer::open([puppet.model.clone()]).await;
    let mut client = connect(&server).await;
    let answer = call(&mut client, INFER, &[("grpc-timeout", "20m")], ask("1")).await;
    assert_eq!(status(answer).await, ("4".to_owned(), "Deadline Exceeded".to_owned()));
    until(|| puppet.model.waiting() == 0).await;
    assert_eq!(puppet.model.statistics.snapshot().fail.count, 1);
}

#[tokio::test]
async fn a_deadline_ends_a_stream_and_cancels_its_requests() {
    let puppet = Puppet::new("puppet", false);
    let server = GrpcServer::open([puppet.model.clone()]).await;
    let mut client = connect(&server).await;
    let body = [ask("1"), ask("2"), ask("3")].concat().into();
    let answer = call(&mut client, STREAM, &[("grpc-timeout", "50000u")], body).await;
    assert_eq!(status(answer).await.0, "4");
    until(|| puppet.model.waiting() == 0).await;
    assert_eq!(puppet.model.statistics.snapshot().fail.count, 3);
}

#[tokio::test]
async fn a_deadline_that_does_not_pass_changes_nothing() {
    let server = GrpcServer::open([model("echo", false, Echo)]).await;
    let mut client = connect(&server).await;
    for headers in [&[("grpc-timeout", "99999999H")][..], &[("grpc-timeout", "600S")], &[]] {
        let answer = call(&mut client, INFER, headers, framed(&request("echo", "1", 4))).await;
        assert_eq!(status(answer).await.0, "0");
        let answer = call(&mut client, STREAM, headers, framed(&request("echo", "1", 4))).await;
        assert_eq!(status(answer).await.0, "0");
    }
}

#[tokio::test]
async fn a_timeout_that_is_none_is_refused() {
    let server = GrpcServer::open([model("echo", false, Echo)]).await;
    let mut client = connect(&server).await;
    let answer = call(&mut client, INFER, &[("grpc-timeout", "soon")], framed(&request("echo", "1", 4))).await;
    let (code, text) = status(answer).await;
    assert_eq!(code, "13");
    assert!(text.starts_with("malformed grpc-timeout \"soon\", expected"), "{text}");
}

#[tokio::test]
async fn requests_that_are_cancelled_leave_the_queue_and_hurt_no_other() {
    let puppet = Puppet::new("puppet", false);
    let server = GrpcServer::open([puppet.model.clone()]).await;
    let mut calls = Vec::new();
    let start = |client: &Client, id: usize| {
        let mut client = client.clone();
        tokio::spawn(async move { call(&mut client, INFER, &[], ask(&id.to_string())).await })
    };
    let client = connect(&server).await;
    for id in 0..1000 {
        calls.push(start(&client, id));
    }
    until(|| puppet.model.waiting() == 1000).await;
    let staying = calls.swap_remove(500);
    calls.iter().for_each(|call| call.abort());
    // Those that are left behind for a later look are few.
    until(|| puppet.model.waiting() <= 4).await;
    let mut pending = puppet.take().await;
    while pending.responder.is_cancelled() {
        pending = puppet.take().await;
    }
    let mut outgoing = alipes_request::responder::AnswerBatch::default();
    outgoing.add(pending.responder, Ok(crate::common::reply(4)));
    outgoing.send();
    assert_eq!(status(staying.await.unwrap()).await.0, "0");
}

#[tokio::test]
async fn a_closed_connection_cancels_the_requests_of_its_streams() {
    let puppet = Puppet::new("puppet", false);
    let server = GrpcServer::open([puppet.model.clone()]).await;
    let stream = server.stream(false).await;
    (0..100).for_each(|id| stream.send(request("puppet", &id.to_string(), 4)));
    until(|| puppet.model.waiting() == 100).await;
    drop(stream);
    until(|| puppet.model.waiting() == 0).await;
}

#[tokio::test]
async fn an_encoding_that_is_not_known_is_refused_with_those_that_are() {
    let server = GrpcServer::open([model("echo", false, Echo)]).await;
    let mut client = connect(&server).await;
    for path in [INFER, STREAM, WATCH] {
        let answer = call(&mut client, path, &[("grpc-encoding", "zstd")], framed(&request("echo", "1", 4))).await;
        assert_eq!(answer.headers()["grpc-accept-encoding"], "identity,deflate,gzip");
        assert_eq!(status(answer).await.0, "12");
    }
}

#[tokio::test]
async fn a_message_that_only_says_it_is_compressed_ends_its_call() {
    let server = GrpcServer::open([model("echo", false, Echo)]).await;
    let mut client = connect(&server).await;
    let mut wire = framed(&request("echo", "1", 4)).to_vec();
    wire[0] = 1;
    for (path, headers, text) in [
        (INFER, &[][..], "a compressed request message comes without grpc-encoding"),
        (INFER, &[("grpc-encoding", "gzip")], "the request message is not compressed as its grpc-encoding says"),
        (STREAM, &[("grpc-encoding", "deflate")], "the request message is not compressed as its grpc-encoding says"),
    ] {
        let answer = call(&mut client, path, headers, wire.clone().into()).await;
        assert_eq!(status(answer).await, ("13".to_owned(), text.to_owned()));
    }
    let fine = framed(&ModelInferRequest { ..request("echo", "1", 4) });
    assert_eq!(status(call(&mut client, INFER, &[("grpc-encoding", "gzip")], fine).await).await.0, "0");
}

/// The next message of a health watcher.
async fn health(body: &mut Incoming) -> i32 {
    let frame = timeout(TEST_TIMEOUT, body.frame()).await.expect("news in time").unwrap().unwrap();
    let message = frame.into_data().expect("a message");
    HealthCheckResponse::decode(message.slice(5..)).unwrap().status
}

#[tokio::test]
async fn a_watcher_learns_each_change_of_readiness() {
    let server = GrpcServer::open([model("echo", false, Echo)]).await;
    let mut client = connect(&server).await;
    let question = framed(&HealthCheckRequest { service: "whatever".to_owned() });
    let mut body = call(&mut client, WATCH, &[], question).await.into_body();
    assert_eq!(health(&mut body).await, 1);
    server.service.registry.set_index(Vec::new(), false);
    assert_eq!(health(&mut body).await, 2);
    server.service.registry.set_index(Vec::new(), true);
    assert_eq!(health(&mut body).await, 1);
    server.phase.send_replace(Phase::Draining);
    assert_eq!(health(&mut body).await, 2);
    let trailers = timeout(TEST_TIMEOUT, body.frame()).await.unwrap().unwrap().unwrap().into_trailers().unwrap();
    assert_eq!(trailers["grpc-status"], "14");
}
