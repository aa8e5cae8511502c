//! Requests through graphs whose services answer at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;

use super::*;
use crate::spec::GraphSpec;
use crate::{Destination, first_holding, instances_of, merged, object_text};

/// Services that answer what their name says: `echo`, `never`, or a status and a body, `500 {"a":1}`.
struct Scripted {
    names: Vec<String>,
    calls: Mutex<Vec<(String, String)>>,
    percent: AtomicU32,
}

impl Services for Scripted {
    type Body = Bytes;

    async fn call(&self, service: usize, body: Bytes) -> Result<Reply<Bytes>, Failure> {
        let name = &self.names[service];
        let sent = String::from_utf8(body.to_vec()).unwrap();
        self.calls.lock().unwrap().push((name.clone(), sent));
        match name.split_once(' ') {
            None if name == "echo" => Ok(Reply { status: 200, body }),
            None if name == "never" => std::future::pending().await,
            None => Err(Failure::new(name.as_str())),
            Some((status, text)) => {
                Ok(Reply { status: status.parse().unwrap(), body: Bytes::copy_from_slice(text.as_bytes()) })
            }
        }
    }

    async fn first(&self, conditions: Vec<Option<Condition>>, body: &Bytes) -> Result<Option<usize>, NoJson> {
        first_holding(&conditions, body)
    }

    async fn instances(&self, body: Bytes) -> Bytes {
        instances_of(&body).map_or(body, Bytes::from)
    }

    async fn part(&self, body: Bytes) -> Result<Bytes, Failure> {
        object_text(&body).map(Bytes::from).map_err(Failure::new)
    }

    fn merge(&self, parts: Vec<(&str, Bytes)>) -> Result<Bytes, Failure> {
        Ok(merged(parts))
    }

    fn percent(&self) -> u32 {
        self.percent.load(Ordering::Relaxed)
    }
}

struct Ran {
    graph: Graph,
    services: Scripted,
}

/// A graph of nodes in JSON, where a step's target is a model that answers what its name says.
fn graph(nodes: &str) -> Ran {
    let spec: GraphSpec =
        serde_json::from_str(&format!(r#"{{"name": "g", "timeout_s": 60, "nodes": {nodes}}}"#)).unwrap();
    let graph = Graph::of(&spec).unwrap();
    let name = |target: &Destination| match target {
        Destination::Model(name) => name.clone(),
        Destination::Url(url) => url.text.clone(),
    };
    let names = graph.services().iter().map(name).collect();
    Ran { graph, services: Scripted { names, calls: Mutex::default(), percent: AtomicU32::new(0) } }
}

impl Ran {
    /// The status and the body of the answer, or of what a client reads of a failure.
    async fn answer(&self, request: &str) -> (u16, String) {
        match run(&self.graph, &self.services, Bytes::copy_from_slice(request.as_bytes())).await {
            Ok(reply) => (reply.status, String::from_utf8(reply.body.to_vec()).unwrap()),
            Err(failure) => (failure.status, failure.body()),
        }
    }

    fn sent(&self) -> Vec<String> {
        self.services.calls.lock().unwrap().drain(..).map(|(_, body)| body).collect()
    }
}

#[tokio::test]
async fn a_sequence_sends_requests_or_answers_and_ends_with_the_last() {
    let ran = graph(
        r#"{"root": {"kind": "Sequence", "steps": [
            {"target": {"model": "200 {\"predictions\": [1.0]}"}, "response": true},
            {"target": {"model": "201 {\"b\": 2}"}, "response": true, "map_predictions": true},
            {"target": {"model": "echo"}}]}}"#,
    );
    assert_eq!(ran.answer("{}").await, (200, "{}".to_owned()));
    assert_eq!(ran.sent(), ["{}", r#"{"instances":[1]}"#, "{}"]);
}

#[tokio::test]
async fn a_hard_failure_ends_a_sequence_and_a_soft_one_does_not() {
    let of = |hard: bool| {
        graph(&format!(
            r#"{{"root": {{"kind": "Sequence", "steps": [
                {{"target": {{"model": "503 busy"}}, "hard": {hard}}},
                {{"target": {{"model": "echo"}}, "response": true}}]}}}}"#
        ))
    };
    assert_eq!(of(true).answer("{}").await, (503, "busy".to_owned()));
    assert_eq!(of(false).answer("{}").await, (200, "busy".to_owned()));
}

#[tokio::test]
async fn a_condition_of_a_sequence_looks_at_the_answer_before_it() {
    let of = |answer: &str, condition: &str| {
        let (answer, condition) = (quoted(answer), quoted(condition));
        graph(&format!(
            r#"{{"root": {{"kind": "Sequence", "steps": [
                {{"target": {{"model": {answer}}}}},
                {{"target": {{"model": "200 \"second\""}}, "condition": {condition}}}]}}}}"#
        ))
    };
    let dog = r#"201 {"predictions": [{"label": "dog"}]}"#;
    assert_eq!(of(dog, "predictions.#(label==\"dog\")").answer("{}").await, (200, "\"second\"".to_owned()));
    // Where it does not hold, the answer before it is the node's, with the status 200.
    assert_eq!(of(dog, "predictions.#(label==\"cat\")").answer("{}").await, (200, dog[4..].to_owned()));
    let failed = (500, r#"{"error":"Failed to process request","cause":"invalid response"}"#.to_owned());
    assert_eq!(of("200 oh", "a").answer("{}").await, failed);
    let first = graph(r#"{"root": {"kind": "Sequence", "steps": [{"target": {"model": "echo"}, "condition": "a"}]}}"#);
    assert_eq!(first.answer("{\"a\": 1}").await, failed);
}

#[tokio::test]
async fn a_splitter_draws_by_weight() {
    let ran = graph(
        r#"{"root": {"kind": "Splitter", "steps": [
            {"target": {"model": "200 a"}, "weight": 20}, {"target": {"model": "200 b"}, "weight": 0},
            {"target": {"model": "500 c"}, "weight": 80, "hard": true}]}}"#,
    );
    let mut counts = [0, 0, 0];
    for percent in 0..100 {
        ran.services.percent.store(percent, Ordering::Relaxed);
        let (_, body) = ran.answer("").await;
        counts[usize::from(body.as_bytes()[0] - b'a')] += 1;
    }
    assert_eq!(counts, [20, 0, 80]);
}

#[tokio::test]
async fn a_switch_takes_the_first_condition_that_holds() {
    let nodes = r#"{"kind": "Switch", "steps": [
        {"target": {"model": "200 never"}},
        {"target": {"model": "200 one"}, "condition": "instances.#(id==\"1\")"},
        {"target": {"model": "200 any"}, "condition": "instances"}]}"#;
    let ran = graph(&format!(r#"{{"root": {nodes}}}"#));
    assert_eq!(ran.answer(r#"{"instances": [{"id": "1"}]}"#).await, (200, "one".to_owned()));
    assert_eq!(ran.answer(r#"{"instances": []}"#).await, (200, "any".to_owned()));
    let cause =
        r#"{"error":"Failed to process request","cause":"None of the routes matched with the switch condition"}"#;
    for body in ["{}", "", "{\"instances\""] {
        assert_eq!(ran.answer(body).await, (404, cause.to_owned()), "{body}");
    }
    // Within another node it is an error like any other.
    let nested = graph(&format!(
        r#"{{"inner": {nodes}, "root": {{"kind": "Sequence", "steps": [{{"target": {{"node": "inner"}}}}]}}}}"#
    ));
    assert_eq!(nested.answer("{}").await, (500, cause.to_owned()));
}

#[tokio::test]
async fn an_ensemble_answers_with_all_answers() {
    let ran = graph(
        r#"{"root": {"kind": "Ensemble", "steps": [
            {"name": "z", "target": {"model": "200 {\"b\": 1.0, \"a\": \"<\"}"}},
            {"target": {"model": "500 {\"error\": null}"}},
            {"name": "a", "target": {"model": "200 null"}}]}}"#,
    );
    let text = r#"{"1":{"error":null},"a":null,"z":{"a":"\u003c","b":1}}"#;
    assert_eq!(ran.answer("{\"x\": 1}").await, (200, text.to_owned()));
    assert_eq!(ran.sent(), vec!["{\"x\": 1}"; 3]);
}

#[tokio::test]
async fn a_hard_failure_or_an_error_ends_an_ensemble_without_the_others() {
    let of = |first: &str, second: &str| {
        graph(&format!(
            r#"{{"root": {{"kind": "Ensemble", "steps": [
                {{"target": {{"model": {}}}, "hard": true}}, {{"target": {{"model": {}}}}}]}}}}"#,
            quoted(first),
            quoted(second)
        ))
    };
    let hard = of("503 {\"z\": 1, \"a\": 2.0}", "never");
    assert_eq!(hard.answer("{}").await, (503, r#"{"a":2,"z":1}"#.to_owned()));
    let cause = |cause: &str| (500, format!(r#"{{"error":"Failed to process request","cause":{}}}"#, quoted(cause)));
    assert_eq!(of("never", "refused").answer("{}").await, cause("refused"));
    let array = "json: cannot unmarshal array into Go value of type map[string]interface {}";
    assert_eq!(of("never", "200 []").answer("{}").await, cause(array));
    let text = "invalid character 'o' looking for beginning of value";
    assert_eq!(of("200 oh", "never").answer("{}").await, cause(text));
}
