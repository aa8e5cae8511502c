//! `ModelStreamInfer` on a real socket: order, ends, errors, limits and farewells.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use alipes_protocol::codec::proto::inference::infer_parameter::ParameterChoice;
use alipes_protocol::codec::proto::inference::model_infer_request::InferRequestedOutputTensor;
use alipes_protocol::codec::proto::inference::{
    InferParameter, ModelInferRequest, ModelInferResponse, ModelStreamInferResponse,
};
use alipes_protocol::limits::{CHECKED_AT_ONCE_BYTES, GRPC_MAX_STREAM_REQUESTS};
use alipes_protocol::{Code, InferError};
use alipes_request::responder::{AnswerBatch, Observer};
use alipes_runtime::model::Pending;

use crate::common::{
    Echo, GrpcServer, Puppet, Stream, TEST_TIMEOUT, model, model_of, reply, request, summary,
    with_empty_final_response as with_empty_final,
};
use alipes_net::phase::Phase;

/// Counts what the caller does.
#[derive(Clone, Default)]
struct Seen(Arc<SeenCounts>);

#[derive(Default)]
struct SeenCounts {
    cancelled: AtomicU64,
    responses: AtomicU64,
    bytes: AtomicU64,
}

impl Observer for Seen {
    fn cancelled(&self) {
        self.0.cancelled.fetch_add(1, Ordering::Relaxed);
    }

    fn consumed(&self, responses: u32, bytes: u64) {
        self.0.responses.fetch_add(responses.into(), Ordering::Relaxed);
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Waits until something is so.
async fn until(so: impl Fn() -> bool, what: &str) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !so() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::task::yield_now().await;
    }
}

fn answer(pending: Pending) {
    AnswerBatch::default().add(pending.responder, Ok(reply(1)));
}

/// The ids of the next messages, each of which is the only response to its request.
async fn ids(stream: &mut Stream, messages: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..messages {
        let message = stream.response().await;
        let (id, error, last) = summary(&message);
        assert_eq!((error, last), ("", Some(true)));
        ids.push(id.to_owned());
    }
    ids
}

#[tokio::test]
async fn a_native_model_answers_each_request_with_its_own_tensor() {
    let server = GrpcServer::open([model("echo", false, Echo)]).await;
    let mut stream = server.stream(false).await;
    for elements in [0, 1, 100, 4095, 4096, 300_000, 3] {
        let request = request("echo", "x", elements);
        stream.send(request.clone());
        let ModelStreamInferResponse { error_message, infer_response } = stream.response().await;
        let ModelInferResponse { model_name, model_version, outputs, raw_output_contents, .. } =
            infer_response.unwrap();
        assert_eq!((error_message.as_str(), model_name.as_str(), model_version.as_str()), ("", "echo", "3"));
        assert_eq!(raw_output_contents, request.raw_input_contents);
        assert_eq!((outputs[0].name.as_str(), outputs[0].shape[0]), ("Y", elements as i64));
    }
    stream.half_close();
    assert_eq!(stream.next().await.unwrap(), None);
}

#[tokio::test]
async fn ordinary_models_answer_in_the_order_of_the_requests() {
    let (slow, quick) = (Puppet::new("slow", false), Puppet::new("quick", false));
    let server = GrpcServer::open([Arc::clone(&slow.model), Arc::clone(&quick.model)]).await;
    let mut stream = server.stream(false).await;
    for (model, id) in [("slow", "1"), ("quick", "2"), ("absent", "3"), ("quick", "4")] {
        stream.send(request(model, id, 1));
    }
    let first = slow.take().await;
    answer(quick.take().await);
    answer(quick.take().await);
    answer(first);
    assert_eq!(ids(&mut stream, 2).await, ["1", "2"]);
    let refused = stream.response().await;
    assert_eq!(summary(&refused), ("3", "Request for unknown model: 'absent' is not found", None));
    assert_eq!(refused.infer_response.unwrap().model_name, "");
    assert_eq!(ids(&mut stream, 1).await, ["4"]);
}

/// A request with so many empty words.
fn words(id: &str, count: usize) -> ModelInferRequest {
    let mut request = request("words", id, count);
    request.inputs[0].datatype = "BYTES".to_owned();
    request.raw_input_contents = vec![vec![0; 4 * count].into()];
    request
}

/// More words than a network thread looks at itself.
const MANY: usize = CHECKED_AT_ONCE_BYTES / 4 + 1;

#[tokio::test]
async fn requests_that_are_submitted_on_another_thread_stay_in_order() {
    let server = GrpcServer::open([model_of("BYTES", "words", false, Echo)]).await;
    let mut stream = server.stream(false).await;
    for (id, count) in [("1", MANY), ("2", 1), ("3", MANY), ("4", MANY), ("5", 1)] {
        stream.send(words(id, count));
    }
    stream.half_close();
    assert_eq!(ids(&mut stream, 5).await, ["1", "2", "3", "4", "5"]);
    assert_eq!(stream.next().await.unwrap(), None);
}

#[tokio::test]
async fn a_request_is_refused_alike_on_whichever_thread() {
    let server = GrpcServer::open([model_of("BYTES", "words", false, Echo)]).await;
    let mut stream = server.stream(false).await;
    for count in [1, MANY] {
        let mut request = with_empty_final(words("x", count));
        request.inputs[0].shape = vec![count as i64 + 1];
        stream.send(request);
        stream.send(words("y", 1));
        let refused = stream.response().await;
        let (id, error, last) = summary(&refused);
        let text =
            format!("expected {} string elements for inference input 'X' for model 'words', got {count}", count + 1);
        assert!(error.ends_with(&text), "{error}");
        assert_eq!((id, last), ("x", None));
        assert_eq!(refused.infer_response.unwrap().model_name, "");
        assert_eq!(ids(&mut stream, 1).await, ["y"]);
    }
}

#[tokio::test]
async fn classes_are_found_on_another_thread_and_stay_in_order() {
    let server = GrpcServer::open([model("echo", false, Echo)]).await;
    let mut stream = server.stream(false).await;
    for (id, elements) in [("1", 100_000), ("2", 1), ("3", 100_000)] {
        let mut request = request("echo", id, elements);
        let classes = InferParameter { parameter_choice: Some(ParameterChoice::Int64Param(1)) };
        let parameters = [("classification".to_owned(), classes)].into();
        request.outputs = vec![InferRequestedOutputTensor { name: "Y".to_owned(), parameters }];
        stream.send(request);
    }
    for id in ["1", "2", "3"] {
        let response = stream.response().await.infer_response.unwrap();
        assert_eq!((response.id.as_str(), response.outputs[0].datatype.as_str()), (id, "BYTES"));
        assert_eq!(response.outputs[0].shape, [1]);
    }
}

#[tokio::test]
async fn decoupled_models_answer_whenever_they_are_ready() {
    let (ordinary, decoupled) = (Puppet::new("ordinary", false), Puppet::new("decoupled", true));
    let server = GrpcServer::open([Arc::clone(&ordinary.model), Arc::clone(&decoupled.model)]).await;
    let mut stream = server.stream(false).await;
    stream.send(request("ordinary", "o", 1));
    stream.send(request("decoupled", "a", 1));
    stream.send(request("decoupled", "b", 1));
    let held = ordinary.take().await;
    let (mut a, b) = (decoupled.take().await.responder, decoupled.take().await.responder);
    let mut outgoing = AnswerBatch::default();
    outgoing.respond(&mut a, Ok(reply(1)));
    assert_eq!(summary(&stream.response().await), ("a", "", Some(false)));
    outgoing.add(b, Ok(reply(1)));
    assert_eq!(summary(&stream.response().await), ("b", "", Some(true)));
    outgoing.add(a, Ok(reply(1)));
    assert_eq!(summary(&stream.response().await), ("a", "", Some(true)));
    answer(held);
    assert_eq!(ids(&mut stream, 1).await, ["o"]);
}

#[tokio::test]
async fn clients_that_ask_receive_an_empty_final_response() {
    let puppet = Puppet::new("m", true);
    let server = GrpcServer::open([Arc::clone(&puppet.model)]).await;
    let mut stream = server.stream(false).await;
    stream.send(request("m", "silent", 1));
    stream.send(with_empty_final(request("m", "told", 1)));
    let mut outgoing = AnswerBatch::default();
    for _ in 0..2 {
        let mut responder = puppet.take().await.responder;
        outgoing.respond(&mut responder, Ok(reply(1)));
        outgoing.finish(responder);
    }
    assert_eq!(summary(&stream.response().await), ("silent", "", Some(false)));
    assert_eq!(summary(&stream.response().await), ("told", "", Some(false)));
    let end = stream.response().await;
    assert_eq!(summary(&end), ("told", "", Some(true)));
    let end = end.infer_response.unwrap();
    assert_eq!((end.model_name.as_str(), end.model_version.as_str(), end.outputs.len()), ("m", "", 0));
    stream.half_close();
    assert_eq!(stream.next().await.unwrap(), None);
}

#[tokio::test]
async fn a_coupled_model_with_a_separate_end_sends_one_response() {
    let puppet = Puppet::new("m", false);
    let server = GrpcServer::open([Arc::clone(&puppet.model)]).await;
    let mut stream = server.stream(false).await;
    stream.send(with_empty_final(request("m", "1", 1)));
    let mut responder = puppet.take().await.responder;
    AnswerBatch::default().respond(&mut responder, Ok(reply(1)));
    AnswerBatch::default().finish(responder);
    assert_eq!(ids(&mut stream, 1).await, ["1"]);
    stream.half_close();
    assert_eq!(stream.next().await.unwrap(), None);
}

#[tokio::test]
async fn errors_of_models_leave_the_stream_open() {
    let puppet = Puppet::new("m", true);
    let server = GrpcServer::open([Arc::clone(&puppet.model)]).await;
    let mut stream = server.stream(false).await;
    stream.send(with_empty_final(request("m", "e", 1)));
    let mut responder = puppet.take().await.responder;
    let mut outgoing = AnswerBatch::default();
    outgoing.respond(&mut responder, Err(InferError::internal("middle")));
    outgoing.respond(&mut responder, Ok(reply(1)));
    outgoing.add(responder, Err(InferError::internal("last")));
    let middle = stream.response().await;
    assert_eq!(summary(&middle), ("e", "middle", Some(false)));
    assert_eq!(middle.infer_response.unwrap().model_name, "m");
    assert_eq!(summary(&stream.response().await), ("e", "", Some(false)));
    assert_eq!(summary(&stream.response().await), ("e", "last", Some(true)));
    stream.send(request("m", "lost", 1));
    drop(puppet.take().await);
    let lost = stream.response().await;
    assert_eq!(summary(&lost), ("lost", "the model dropped the request without an answer", Some(true)));
}

#[tokio::test]
async fn a_model_error_ends_a_strict_stream_and_cancels_its_requests() {
    let puppet = Puppet::new("m", true);
    let server = GrpcServer::open([Arc::clone(&puppet.model)]).await;
    let mut stream = server.stream(true).await;
    stream.send(request("absent", "refused", 1));
    let refused = stream.response().await;
    assert_eq!(summary(&refused).0, "refused");
    stream.send(request("m", "a", 1));
    stream.send(request("m", "b", 1));
    let (failing, other) = (puppet.take().await.responder, puppet.take().await.responder);
    AnswerBatch::default().add(failing, Err(InferError::new(Code::NotFound, "last failure")));
    let status = stream.next().await.unwrap_err();
    assert_eq!((status.code(), status.message()), (tonic::Code::NotFound, "last failure"));
    assert!(other.is_cancelled());
}

#[tokio::test]
async fn a_half_closed_stream_ends_when_its_requests_have() {
    let puppet = Puppet::new("m", true);
    let server = GrpcServer::open([Arc::clone(&puppet.model)]).await;
    let mut stream = server.stream(false).await;
    stream.send(request("m", "1", 1));
    stream.half_close();
    let mut responder = puppet.take().await.responder;
    let mut outgoing = AnswerBatch::default();
    outgoing.respond(&mut responder, Ok(reply(1)));
    assert_eq!(summary(&stream.response().await), ("1", "", Some(false)));
    outgoing.add(responder, Ok(reply(1)));
    assert_eq!(summary(&stream.response().await), ("1", "", Some(true)));
    assert_eq!(stream.next().await.unwrap(), None);
}

#[tokio::test]
async fn a_client_that_leaves_withdraws_every_request_of_its_stream() {
    let puppet = Puppet::new("m", true);
    let server = GrpcServer::open([Arc::clone(&puppet.model)]).await;
    let mut stream = server.stream(false).await;
    let seen = Seen::default();
    let mut underway = Vec::new();
    for _ in 0..3 {
        stream.send(request("m", "1", 1));
        let mut pending = puppet.take().await;
        pending.responder.observe(seen.clone());
        underway.push(pending.responder);
    }
    AnswerBatch::default().respond(&mut underway[0], Ok(reply(1)));
    assert_eq!(summary(&stream.response().await).0, "1");
    drop(stream);
    until(|| seen.0.cancelled.load(Ordering::Relaxed) == 3, "the model never heard of it").await;
    assert!(underway.iter().all(|responder| responder.is_cancelled()));
    assert!(server.service.inflight.wait_empty(Instant::now()));
}

#[tokio::test]
async fn consumption_is_reported_and_a_slow_reader_gets_few_responses() {
    const RESPONSES: u64 = 2000;
    const ELEMENTS: usize = 2000;
    let puppet = Puppet::new("m", true);
    let server = GrpcServer::open([Arc::clone(&puppet.model)]).await;
    let mut stream = server.stream(false).await;
    stream.send(request("m", "1", 1));
    let mut responder = puppet.take().await.responder;
    let seen = Seen::default();
    responder.observe(seen.clone());
    let mut outgoing = AnswerBatch::default();
    (0..RESPONSES).for_each(|_| outgoing.respond(&mut responder, Ok(reply(ELEMENTS))));
    // A second stream on the same connection is served: this one does not stand in its way.
    let mut other = server.stream(false).await;
    other.send(request("absent", "2", 1));
    assert_eq!(summary(&other.response().await).0, "2");
    let consumed = seen.0.responses.load(Ordering::Relaxed);
    assert!(consumed < RESPONSES / 2, "{consumed} of {RESPONSES} responses were taken though none was read");
    for _ in 0..RESPONSES {
        assert_eq!(summary(&stream.response().await), ("1", "", Some(false)));
    }
    let expected = (RESPONSES, RESPONSES * (ELEMENTS * size_of::<f32>()) as u64);
    let counts = || (seen.0.responses.load(Ordering::Relaxed), seen.0.bytes.load(Ordering::Relaxed));
    until(|| counts() == expected, "not every response was reported").await;
}

#[tokio::test]
async fn a_stream_has_only_so_many_requests_in_flight() {
    const MORE: usize = 20;
    let puppet = Puppet::new("m", false);
    let server = GrpcServer::open([Arc::clone(&puppet.model)]).await;
    let mut stream = server.stream(false).await;
    (0..GRPC_MAX_STREAM_REQUESTS + MORE).for_each(|number| stream.send(request("m", &number.to_string(), 1)));
    until(|| puppet.model.waiting() == GRPC_MAX_STREAM_REQUESTS, "the requests never came").await;
    let mut other = server.stream(false).await;
    other.send(request("absent", "x", 1));
    other.response().await;
    assert_eq!(puppet.model.waiting(), GRPC_MAX_STREAM_REQUESTS);
    for number in 0..GRPC_MAX_STREAM_REQUESTS + MORE {
        answer(puppet.take().await);
        assert_eq!(ids(&mut stream, 1).await, [number.to_string()]);
    }
}

#[tokio::test]
async fn room_that_comes_free_without_a_word_is_used() {
    let puppet = Puppet::new("m", true);
    let server = GrpcServer::open([Arc::clone(&puppet.model)]).await;
    let stream = server.stream(false).await;
    (0..=GRPC_MAX_STREAM_REQUESTS).for_each(|_| stream.send(request("m", "", 1)));
    for _ in 0..=GRPC_MAX_STREAM_REQUESTS {
        AnswerBatch::default().finish(puppet.take().await.responder);
    }
}

#[tokio::test]
async fn a_draining_stream_finishes_what_it_has_and_sends_goaway() {
    let puppet = Puppet::new("m", true);
    let server = GrpcServer::open([Arc::clone(&puppet.model)]).await;
    let (mut idle, mut busy) = (server.stream(false).await, server.stream(false).await);
    busy.send(request("m", "1", 1));
    let mut responder = puppet.take().await.responder;
    server.phase.send_replace(Phase::Draining);
    let status = idle.next().await.unwrap_err();
    let text = "GRPC server is shutting down and has stopped accepting new requests.";
    assert_eq!((status.code(), status.message()), (tonic::Code::Unavailable, text));
    let mut outgoing = AnswerBatch::default();
    outgoing.respond(&mut responder, Ok(reply(1)));
    assert_eq!(summary(&busy.response().await), ("1", "", Some(false)));
    outgoing.add(responder, Ok(reply(1)));
    assert_eq!(summary(&busy.response().await), ("1", "", Some(true)));
    assert_eq!(busy.next().await.unwrap_err().code(), tonic::Code::Unavailable);
}

#[tokio::test]
async fn a_stream_that_is_cut_ends_with_the_reason() {
    let puppet = Puppet::new("m", true);
    let server = GrpcServer::open([Arc::clone(&puppet.model)]).await;
    let mut stream = server.stream(false).await;
    stream.send(request("m", "1", 1));
    let mut responder = puppet.take().await.responder;
    AnswerBatch::default().respond(&mut responder, Ok(reply(1)));
    assert_eq!(summary(&stream.response().await), ("1", "", Some(false)));
    server.phase.send_replace(Phase::Cut);
    let status = stream.next().await.unwrap_err();
    let text = "Server is stopping, the request was not finished in time";
    assert_eq!((status.code(), status.message()), (tonic::Code::Unavailable, text));
    assert!(responder.is_cancelled());
}

#[tokio::test]
async fn the_unary_call_refuses_models_with_any_number_of_responses() {
    let server = GrpcServer::open([model("m", true, Echo)]).await;
    let path = "/inference.GRPCInferenceService/ModelInfer";
    let status = server.call::<_, ModelInferResponse>(path, request("m", "1", 1)).await.unwrap_err();
    let text = "ModelInfer RPC doesn't support models with decoupled transaction policy";
    assert_eq!((status.code(), status.message()), (tonic::Code::Unimplemented, text));
}
