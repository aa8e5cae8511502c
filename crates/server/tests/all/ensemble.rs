//! Ensembles of models that a test controls: their calls, their answers, their statistics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::common::{Echo, Puppet, TEST_TIMEOUT, model, reply, service, tensor};
use alipes_protocol::{
    Code, CorrelationId, InferError, InferRequest, Origin, Parameter, RequestedOutput, SequenceInfo,
};
use alipes_request::chain::{Chain, Holder};
use alipes_request::mailbox::{Mailbox, Responses};
use alipes_request::responder::{Answer, AnswerBatch, Observer, Reply, Responder};
use alipes_runtime::build::build;
use alipes_runtime::cancellation::Cancellation;
use alipes_runtime::model::Pending;
use alipes_runtime::model::{Arrival, ModelVersion};
use alipes_service::Service;
use serde_json::json;
use tokio::sync::oneshot;

/// A step of `model`, from one tensor to another.
fn step(model: &str, from: &str, to: &str) -> serde_json::Value {
    json!({"model": model, "version": -1, "inputs": {"X": from}, "outputs": {"Y": to}, "decoupled": false})
}

fn decoupled(model: &str, from: &str, to: &str) -> serde_json::Value {
    json!({"model": model, "version": -1, "inputs": {"X": from}, "outputs": {"Y": to}, "decoupled": true})
}

/// Version 5 of an ensemble with the input `X` and these outputs, published.
fn ensemble(service: &Arc<Service>, name: &str, outputs: &[&str], steps: &[serde_json::Value]) -> Arc<ModelVersion> {
    narrow_ensemble(service, name, outputs, steps, 0)
}

/// Version 5 of an ensemble with the input `X` and these outputs, published, with room for `most` calls at each step,
/// or for any number where `most` is 0.
fn narrow_ensemble(
    service: &Arc<Service>,
    name: &str,
    outputs: &[&str],
    steps: &[serde_json::Value],
    most: u32,
) -> Arc<ModelVersion> {
    let port = |name: &&str| json!({"name": name, "datatype": "FP32", "dims": [-1]});
    let spec = json!({
        "schema": 1, "name": name, "version": 5, "platform": "ensemble", "max_batch_size": 0,
        "inputs": [port(&"X")], "outputs": outputs.iter().map(port).collect::<Vec<_>>(),
        "scheduling": {"kind": "direct"}, "instances": [],
        "decoupled": steps.iter().any(|step| step["decoupled"] == true),
        "engine": {"kind": "ensemble", "steps": steps, "max_inflight_requests": most},
        "config_json": "{}", "config_proto": "", "metric_tags": {},
    });
    let built = build(&service.context, serde_json::from_value(spec).unwrap(), &Cancellation::default()).unwrap();
    service.registry.publish(name, "", vec![Arc::clone(&built)]);
    built
}

fn new_request(id: &str, outputs: &[&str]) -> InferRequest {
    let outputs = outputs.iter().map(|&name| RequestedOutput { name: name.into(), ..Default::default() }).collect();
    InferRequest { id: id.into(), inputs: vec![tensor(2)], outputs, ..Default::default() }
}

fn submit(model: &Arc<ModelVersion>) -> oneshot::Receiver<Answer> {
    model.submit(new_request("i", &[]), Instant::now(), Responder::unary).unwrap()
}

fn submit_stream(model: &Arc<ModelVersion>) -> Responses {
    model.submit(new_request("i", &[]), Instant::now(), || Responder::stream_through(Mailbox::new())).unwrap()
}

async fn wait(answer: oneshot::Receiver<Answer>) -> Answer {
    tokio::time::timeout(TEST_TIMEOUT, answer).await.expect("an answer in time").expect("every request is answered")
}

fn answer(pending: Pending, answer: Answer) {
    let mut outgoing = AnswerBatch::default();
    outgoing.add(pending.responder, answer);
    outgoing.send();
}

fn respond(pending: &mut Pending, elements: usize) {
    let mut outgoing = AnswerBatch::default();
    outgoing.respond(&mut pending.responder, Ok(reply(elements)));
    outgoing.send();
}

fn finish(pending: Pending) {
    let mut outgoing = AnswerBatch::default();
    outgoing.finish(pending.responder);
    outgoing.send();
}

/// How many elements the outputs of a response have, by name.
fn elements(reply: &Reply) -> Vec<(&str, i64)> {
    reply.outputs.iter().map(|output| (output.name.as_str(), output.shape[0])).collect()
}

async fn next(responses: &mut Responses) -> (Option<usize>, bool) {
    let response = tokio::time::timeout(TEST_TIMEOUT, responses.next()).await.expect("a response in time").unwrap();
    (response.answer.map(|answer| answer.unwrap().outputs[0].shape[0] as usize), response.last)
}

/// Counts what the caller of a step does.
#[derive(Clone, Default)]
struct Seen(Arc<(AtomicU64, AtomicU64)>);

impl Seen {
    fn cancelled(&self) -> u64 {
        self.0.0.load(Ordering::Relaxed)
    }

    fn consumed(&self) -> u64 {
        self.0.1.load(Ordering::Relaxed)
    }
}

impl Observer for Seen {
    fn cancelled(&self) {
        self.0.0.fetch_add(1, Ordering::Relaxed);
    }

    fn consumed(&self, responses: u32, _: u64) {
        self.0.1.fetch_add(responses.into(), Ordering::Relaxed);
    }
}

#[tokio::test]
async fn the_ensemble_records_the_steps_that_it_runs() {
    let service = Arc::new(service([model("echo", false, Echo)]));
    let two = ensemble(&service, "two", &["R"], &[step("echo", "X", "mid"), step("echo", "mid", "R")]);
    let reply = wait(submit(&two)).await.unwrap();
    assert_eq!((reply.outputs[0].name.as_str(), &reply.outputs[0].data), ("R", &tensor(2).data));
    let statistics = two.statistics.snapshot();
    assert_eq!((statistics.success.count, statistics.execution_count, statistics.inference_count), (1, 1, 1));
    assert_eq!((statistics.compute.compute_infer.count, statistics.queue.count, statistics.fail.count), (1, 1, 0));
    let echo = service.lookup("echo", "").unwrap().statistics.snapshot();
    assert_eq!(echo.success.count, 2);
    assert_eq!(statistics.compute.compute_infer.ns, echo.compute.compute_infer.ns);
}

#[tokio::test]
async fn a_response_carries_the_sequence_of_its_step() {
    let puppet = Puppet::new("puppet", false);
    let service = Arc::new(service([Arc::clone(&puppet.model)]));
    let one = ensemble(&service, "one", &["R"], &[step("puppet", "X", "R")]);
    let sequence = SequenceInfo { correlation_id: CorrelationId::Number(7), start: true, end: false };
    let sent =
        one.submit(InferRequest { sequence, ..new_request("i", &[]) }, Instant::now(), Responder::unary).unwrap();
    let parameters = vec![("sequence_end".to_owned(), Parameter::Bool(true)), ("x".to_owned(), Parameter::Int64(1))];
    answer(puppet.take().await, Ok(Reply { parameters, ..reply(1) }));
    let parameters = wait(sent).await.unwrap().parameters;
    let expected = [
        ("sequence_id", Parameter::Int64(7)),
        ("sequence_start", Parameter::Bool(false)),
        ("sequence_end", Parameter::Bool(true)),
    ];
    assert_eq!(parameters, expected.map(|(name, value)| (name.to_owned(), value)));
}

#[tokio::test]
async fn independent_steps_are_called_at_once_and_unwanted_ones_never() {
    let (left, right) = (Puppet::new("left", false), Puppet::new("right", false));
    let service = Arc::new(service([&left, &right].map(|puppet| Arc::clone(&puppet.model))));
    let fork = ensemble(&service, "fork", &["L", "R"], &[step("left", "X", "L"), step("right", "X", "R")]);
    let both = submit(&fork);
    answer(right.take().await, Ok(reply(3)));
    answer(left.take().await, Ok(reply(4)));
    assert_eq!(elements(&wait(both).await.unwrap()), [("L", 4), ("R", 3)]);
    let one = fork.submit(new_request("i", &["R"]), Instant::now(), Responder::unary).unwrap();
    answer(right.take().await, Ok(reply(5)));
    assert_eq!(elements(&wait(one).await.unwrap()), [("R", 5)]);
    assert_eq!(left.model.waiting(), 0);
}

#[tokio::test]
async fn an_error_of_a_step_ends_the_request_and_withdraws_the_other_steps() {
    let (left, right) = (Puppet::new("left", false), Puppet::new("right", false));
    let service = Arc::new(service([&left, &right].map(|puppet| Arc::clone(&puppet.model))));
    let fork = ensemble(&service, "fork", &["L", "R"], &[step("left", "X", "L"), step("right", "X", "R")]);
    let sent = submit(&fork);
    let mut other = left.take().await;
    let seen = Seen::default();
    other.responder.observe(seen.clone());
    answer(right.take().await, Err(InferError::new(Code::NotFound, "nothing there")));
    let error = wait(sent).await.unwrap_err();
    assert_eq!((error.code, error.origin), (Code::NotFound, Origin::Model));
    assert_eq!(error.message, "in ensemble 'fork', nothing there");
    assert_eq!((seen.cancelled(), other.responder.is_cancelled()), (1, true));
    answer(other, Ok(reply(1)));
    let statistics = fork.statistics.snapshot();
    assert_eq!((statistics.success.count, statistics.fail.count, statistics.failures), (0, 1, [0, 0, 0, 1]));
}

#[tokio::test]
async fn a_request_that_a_step_refuses_ends_with_the_step_s_text() {
    let service = Arc::new(service([model("echo", false, Echo)]));
    let wrong =
        json!({"model": "echo", "version": -1, "inputs": {"Q": "X"}, "outputs": {"Y": "R"}, "decoupled": false});
    let wrong = ensemble(&service, "wrong", &["R"], &[wrong]);
    let error = wait(submit(&wrong)).await.unwrap_err();
    assert_eq!(error.message, "in ensemble 'wrong', unexpected inference input 'Q' for model 'echo'");
}

#[tokio::test]
async fn a_step_whose_model_is_gone_is_named() {
    let service = Arc::new(service([model("echo", false, Echo)]));
    let one = ensemble(&service, "one", &["R"], &[step("echo", "X", "R")]);
    assert!(one.is_ready());
    service.registry.publish("echo", "", Vec::new());
    assert!(!one.is_ready());
    let error = wait(submit(&one)).await.unwrap_err();
    assert_eq!(error.message, "in ensemble 'one', Request for unknown model: 'echo' has no available versions");
}

#[tokio::test]
async fn a_caller_who_leaves_withdraws_the_steps() {
    let puppet = Puppet::new("puppet", false);
    let service = Arc::new(service([Arc::clone(&puppet.model)]));
    let one = ensemble(&service, "one", &["R"], &[step("puppet", "X", "R")]);
    let sent = submit(&one);
    let mut pending = puppet.take().await;
    let seen = Seen::default();
    pending.responder.observe(seen.clone());
    drop(sent);
    assert_eq!((seen.cancelled(), pending.responder.is_cancelled()), (1, true));
    answer(pending, Ok(reply(1)));
    let statistics = one.statistics.snapshot();
    assert_eq!((statistics.success.count, statistics.failures), (0, [0, 1, 0, 0]));
}

#[tokio::test]
async fn a_step_that_waits_leaves_its_queue_with_the_caller() {
    let puppet = Puppet::new("puppet", false);
    let service = Arc::new(service([Arc::clone(&puppet.model)]));
    let one = ensemble(&service, "one", &["R"], &[step("puppet", "X", "R")]);
    let sent = submit(&one);
    assert_eq!(puppet.model.waiting(), 1);
    drop(sent);
    assert_eq!(puppet.model.waiting(), 0);
    assert_eq!(puppet.model.statistics.snapshot().failures, [0, 1, 0, 0]);
}

#[tokio::test]
async fn a_run_keeps_the_versions_that_it_began_with() {
    let (old, new) = (Puppet::new("puppet", false), Puppet::new("puppet", false));
    let service = Arc::new(service([Arc::clone(&old.model)]));
    let two = ensemble(&service, "two", &["R"], &[step("puppet", "X", "mid"), step("puppet", "mid", "R")]);
    let sent = submit(&two);
    service.registry.publish("puppet", "", vec![Arc::clone(&new.model)]);
    answer(old.take().await, Ok(reply(1)));
    answer(old.take().await, Ok(reply(1)));
    assert!(wait(sent).await.is_ok());
    let later = submit(&two);
    answer(new.take().await, Ok(reply(1)));
    answer(new.take().await, Ok(reply(1)));
    assert!(wait(later).await.is_ok());
}

#[tokio::test]
async fn an_ensemble_may_be_a_step_of_another() {
    let inner = Puppet::new("puppet", false);
    let service = Arc::new(service([Arc::clone(&inner.model)]));
    ensemble(&service, "one", &["R"], &[step("puppet", "X", "R")]);
    let steps =
        [json!({"model": "one", "version": 5, "inputs": {"X": "X"}, "outputs": {"R": "Q"}, "decoupled": false})];
    let outer = ensemble(&service, "outer", &["Q"], &steps);
    let sent = submit(&outer);
    answer(inner.take().await, Err(InferError::invalid("no")));
    assert_eq!(wait(sent).await.unwrap_err().message, "in ensemble 'outer', in ensemble 'one', no");
    let sent = submit(&outer);
    answer(inner.take().await, Ok(reply(6)));
    assert_eq!(elements(&wait(sent).await.unwrap()), [("Q", 6)]);
    assert_eq!(outer.statistics.snapshot().compute.compute_infer.count, 1);
}

#[tokio::test]
async fn each_response_of_a_decoupled_step_is_answered_in_its_order() {
    let (source, echo) = (Puppet::new("source", true), model("echo", false, Echo));
    let service = Arc::new(service([Arc::clone(&source.model), echo]));
    let all = ensemble(&service, "all", &["R"], &[decoupled("source", "X", "each"), step("echo", "each", "R")]);
    let mut responses = submit_stream(&all);
    let mut pending = source.take().await;
    (1..=3).for_each(|elements| respond(&mut pending, elements));
    for elements in 1..=3 {
        assert_eq!(next(&mut responses).await, (Some(elements), false));
    }
    finish(pending);
    assert_eq!(next(&mut responses).await, (None, true));
    let statistics = all.statistics.snapshot();
    assert_eq!((statistics.success.count, statistics.inference_count), (1, 1));
}

#[tokio::test]
async fn a_decoupled_step_that_gives_nothing_answers_nothing() {
    let source = Puppet::new("source", true);
    let service = Arc::new(service([Arc::clone(&source.model)]));
    let all = ensemble(&service, "all", &["R"], &[decoupled("source", "X", "R")]);
    let mut responses = submit_stream(&all);
    finish(source.take().await);
    assert_eq!(next(&mut responses).await, (None, true));
}

#[tokio::test]
async fn a_decoupled_step_sees_as_consumed_what_the_client_consumed() {
    let (source, slow) = (Puppet::new("source", true), Puppet::new("slow", false));
    let service = Arc::new(service([&source, &slow].map(|puppet| Arc::clone(&puppet.model))));
    let all = ensemble(&service, "all", &["R"], &[decoupled("source", "X", "each"), step("slow", "each", "R")]);
    let mut responses = submit_stream(&all);
    let (mut pending, seen) = (source.take().await, Seen::default());
    pending.responder.observe(seen.clone());
    respond(&mut pending, 1);
    answer(slow.take().await, Ok(reply(8)));
    assert_eq!(seen.consumed(), 0);
    assert_eq!(next(&mut responses).await, (Some(8), false));
    assert_eq!(seen.consumed(), 1);
    drop(responses);
    assert_eq!(seen.cancelled(), 1);
    finish(pending);
}

#[tokio::test]
async fn no_more_calls_of_a_step_are_under_way_than_it_has_room_for() {
    let puppet = Puppet::new("puppet", false);
    let service = Arc::new(service([Arc::clone(&puppet.model)]));
    let steps = [step("puppet", "X", "R")];
    let narrow = narrow_ensemble(&service, "narrow", &["R"], &steps, 2);
    let sent: Vec<_> = (0..5).map(|_| submit(&narrow)).collect();
    for (number, sent) in sent.into_iter().enumerate() {
        assert_eq!(puppet.model.waiting(), 2.min(5 - number));
        answer(puppet.take().await, Ok(reply(number + 1)));
        assert_eq!(elements(&wait(sent).await.unwrap()), [("R", number as i64 + 1)]);
    }
    assert_eq!(narrow.statistics.snapshot().success.count, 5);
}

#[tokio::test]
async fn a_call_that_waits_for_room_goes_with_its_caller_and_costs_no_room() {
    let puppet = Puppet::new("puppet", false);
    let service = Arc::new(service([Arc::clone(&puppet.model)]));
    let narrow = narrow_ensemble(&service, "narrow", &["R"], &[step("puppet", "X", "R")], 1);
    let (first, second, third) = (submit(&narrow), submit(&narrow), submit(&narrow));
    let pending = puppet.take().await;
    drop(second);
    drop(first);
    assert_eq!(puppet.model.waiting(), 1, "the first caller's room is the third one's");
    answer(pending, Ok(reply(1)));
    answer(puppet.take().await, Ok(reply(3)));
    assert_eq!(elements(&wait(third).await.unwrap()), [("R", 3)]);
}

#[tokio::test]
async fn room_is_handed_through_any_number_of_requests_that_fail_at_once() {
    let puppet = Puppet::new("puppet", false);
    let service = Arc::new(service([Arc::clone(&puppet.model)]));
    let narrow = narrow_ensemble(&service, "narrow", &["R"], &[step("puppet", "X", "R")], 1);
    let first = submit(&narrow);
    let others: Vec<_> = (0..20_000).map(|_| submit(&narrow)).collect();
    puppet.model.failing.store(true, Ordering::Relaxed);
    answer(puppet.take().await, Ok(reply(1)));
    assert!(wait(first).await.is_ok());
    for other in others {
        assert_eq!(wait(other).await.unwrap_err().code, Code::Unavailable);
    }
    puppet.model.failing.store(false, Ordering::Relaxed);
    let last = submit(&narrow);
    answer(puppet.take().await, Ok(reply(1)));
    assert!(wait(last).await.is_ok());
}

#[tokio::test]
async fn responses_of_a_decoupled_step_wait_for_room_in_their_order() {
    let (source, slow) = (Puppet::new("source", true), Puppet::new("slow", false));
    let service = Arc::new(service([&source, &slow].map(|puppet| Arc::clone(&puppet.model))));
    let steps = [decoupled("source", "X", "each"), step("slow", "each", "R")];
    let narrow = narrow_ensemble(&service, "narrow", &["R"], &steps, 1);
    let mut responses = submit_stream(&narrow);
    let mut pending = source.take().await;
    (1..=3).for_each(|elements| respond(&mut pending, elements));
    finish(pending);
    for elements in 1..=3 {
        assert_eq!(slow.model.waiting(), 1);
        let call = slow.take().await;
        assert_eq!(call.checked.inputs[0].shape[0], elements as i64);
        answer(call, Ok(reply(elements)));
        assert_eq!(next(&mut responses).await, (Some(elements), elements == 3));
    }
}

#[tokio::test]
async fn an_ordinary_step_that_answers_nothing_or_several_times_is_an_error() {
    let puppet = Puppet::new("puppet", false);
    let service = Arc::new(service([Arc::clone(&puppet.model)]));
    let one = ensemble(&service, "one", &["R"], &[step("puppet", "X", "R")]);
    let sent = submit(&one);
    finish(puppet.take().await);
    let text = "in ensemble 'one', [request id: i] unexpected deadlock, at least one output is not set while no more \
                ensemble steps can be made";
    assert_eq!(wait(sent).await.unwrap_err().message, text);
    let sent = submit(&one);
    let mut pending = puppet.take().await;
    (0..2).for_each(|_| respond(&mut pending, 1));
    finish(pending);
    assert_eq!(wait(sent).await.unwrap_err().message, "in ensemble 'one', expected a single response, got 2");
}

/// Passes on what the caller of a model gets.
struct AnswerReader(tokio::sync::mpsc::UnboundedSender<Option<Answer>>);

impl alipes_request::mailbox::Reader for AnswerReader {
    fn take(&self, response: alipes_request::mailbox::Response) {
        let _ = self.0.send(response.answer);
    }
}

/// The answer of an ensemble around a model with so many instances, the first of which has called it. The model is
/// called only where it can be.
async fn called_by_its_model(instances: u64) -> Option<Result<Reply, InferError>> {
    let puppet = Puppet::calling("puppet", instances);
    let service = Arc::new(service([Arc::clone(&puppet.model)]));
    let one = ensemble(&service, "one", &["R"], &[step("puppet", "X", "R")]);
    let (sender, mut answers) = tokio::sync::mpsc::unbounded_channel();
    let chain = Chain::new(&puppet.model.name, None, Some(Holder { instance: 0, request: 0 }), Vec::new());
    let arrival = Arrival { at: Instant::now(), chain: Some(chain), shares: None };
    let caller = one.submit(new_request("i", &[]), arrival, || {
        Responder::into_mailbox(&Mailbox::read_by(Arc::new(AnswerReader(sender))), 0)
    });
    let _caller = caller.unwrap();
    if instances > 1 {
        answer(puppet.take().await, Ok(reply(1)));
    }
    answers.recv().await.unwrap()
}

#[tokio::test]
async fn a_model_whose_calls_led_to_the_ensemble_is_called_while_it_has_instances() {
    let error = called_by_its_model(1).await.unwrap().unwrap_err();
    assert_eq!(error.message, "in ensemble 'one', the call would wait for itself: puppet -> puppet");
    assert!(called_by_its_model(2).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_step_that_became_decoupled_is_refused_until_a_reload() {
    let service = Arc::new(service([model("echo", false, Echo)]));
    let one = ensemble(&service, "one", &["R"], &[step("echo", "X", "R")]);
    service.registry.publish("echo", "", vec![model("echo", true, Echo)]);
    let error = wait(submit(&one)).await.unwrap_err();
    assert_eq!(error.code, Code::Unavailable);
    assert!(error.message.contains("another transaction policy"), "{error}");
}

#[tokio::test]
async fn steps_that_do_not_fit_together_are_refused_by_name() {
    let service = Arc::new(service([]));
    let refused = |steps: &[serde_json::Value]| {
        let port = |name: &str| json!({"name": name, "datatype": "FP32", "dims": [-1]});
        let spec = json!({
            "schema": 1, "name": "e", "version": 1, "platform": "ensemble", "max_batch_size": 0,
            "inputs": [port("X")], "outputs": [port("R")], "scheduling": {"kind": "direct"}, "instances": [],
            "engine": {"kind": "ensemble", "steps": steps}, "config_json": "", "config_proto": "", "metric_tags": {},
        });
        let built = build(&service.context, serde_json::from_value(spec).unwrap(), &Cancellation::default());
        built.err().expect("they do not fit").message
    };
    let twice = refused(&[step("m", "X", "R"), step("n", "X", "R")]);
    assert_eq!(twice, "in ensemble e, tensor 'R' is written more than once");
    let circle = refused(&[step("m", "R", "q"), step("n", "q", "R")]);
    assert_eq!(circle, "in ensemble e, step 0 of model 'm' takes a tensor that no step before it writes");
}

#[test]
fn answers_of_many_threads_advance_the_run_one_by_one() {
    let service = Arc::new(service([model("echo", false, Echo)]));
    let steps: Vec<_> = (0..8).map(|number| step("echo", "X", &format!("T{number}"))).collect();
    let names: Vec<String> = (0..8).map(|number| format!("T{number}")).collect();
    let wide = ensemble(&service, "wide", &names.iter().map(String::as_str).collect::<Vec<_>>(), &steps);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let wide = &wide;
            scope.spawn(move || {
                for _ in 0..100 {
                    let reply = submit(wide).blocking_recv().expect("every request is answered").unwrap();
                    assert_eq!(reply.outputs.len(), 8);
                }
            });
        }
    });
    assert_eq!(wide.statistics.snapshot().success.count, 400);
}
