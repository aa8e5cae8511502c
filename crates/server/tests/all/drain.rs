//! What clients of HTTP see while the server stops, phase by phase, on a clock that jumps.

use std::sync::Arc;
use std::time::Duration;

use alipes_net::phase::Phase;
use alipes_net::policy::ListenerKind;
use alipes_protocol::limits::{EXIT_GRACE, METRICS_IDLE_TIME, REFUSAL_TIME};
use alipes_request::responder::AnswerBatch;
use alipes_spec::{ConnectionSpec, KeepaliveSpec};
use tokio::time::sleep;

use crate::common::{Echo, Puppet, model, reply};
use crate::memory::http2::{GOAWAY, HEADERS, get};
use crate::memory::{Connection, Endpoint};

const LIVE: &str = "GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n";
const BODY: &str = r#"{"inputs":[{"name":"X","datatype":"FP32","shape":[1],"data":[1]}]}"#;
const REFUSED: &str = r#"{"error":"Server is stopping, it does not accept new requests"}"#;
const UNFINISHED: &str = r#"{"error":"Server is stopping, the request was not finished in time"}"#;
const NO_METRICS: &str = "# GET /metrics shows the metrics; all other requests go to the server's HTTP port\n";

fn infer(model: &str) -> String {
    post(&format!("/v2/models/{model}/infer"), BODY)
}

fn post(path: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn open(kind: ListenerKind) -> Endpoint {
    Endpoint::open(kind, ConnectionSpec::default(), KeepaliveSpec::default(), [model("echo", false, Echo)])
}

fn open_puppet(decoupled: bool) -> (Endpoint, Puppet) {
    let puppet = Puppet::new("puppet", decoupled);
    let models = [Arc::clone(&puppet.model)];
    (Endpoint::open(ListenerKind::Http, ConnectionSpec::default(), KeepaliveSpec::default(), models), puppet)
}

/// Status of an answer, and whether it says that the connection ends.
fn summary(head: &str) -> (&str, bool) {
    (&head[9..12], head.contains("\r\nconnection: close\r\n"))
}

/// A connection that was used.
async fn connect(endpoint: &Endpoint) -> Connection {
    let mut connection = endpoint.connect();
    assert!(connection.send(LIVE).await);
    assert_eq!(summary(&connection.head().await), ("200", false));
    connection
}

#[tokio::test(start_paused = true)]
async fn a_drain_answers_the_next_request_and_says_that_it_was_the_last() {
    let endpoint = open(ListenerKind::Http);
    let mut connections = [connect(&endpoint).await, endpoint.connect()];
    endpoint.reach(Phase::Draining);
    sleep(EXIT_GRACE / 2).await;
    // A question that no other thread has a part in: the clock would jump while that works.
    let question = LIVE.replace("/v2/health/live", "/v2/models/echo");
    for connection in &mut connections {
        assert!(connection.send(&question).await);
        assert_eq!(summary(&connection.head().await), ("200", true));
        assert!(connection.rest().await.contains("\"echo\""));
    }
    // A client that connects now is answered too.
    let mut late = endpoint.connect();
    assert!(late.send(LIVE).await);
    assert_eq!(summary(&late.head().await), ("200", true));
    assert_eq!(late.rest().await, "");
}

#[tokio::test(start_paused = true)]
async fn a_drain_closes_connections_without_a_request_after_its_grace() {
    let endpoint = open(ListenerKind::Http);
    let mut connections = [connect(&endpoint).await, endpoint.connect()];
    sleep(Duration::from_secs(20)).await;
    endpoint.reach(Phase::Draining);
    for connection in &mut connections {
        assert_eq!(connection.rest().await, "");
        let after = connection.age() - Duration::from_secs(20);
        assert!((EXIT_GRACE..2 * EXIT_GRACE).contains(&after), "closed {after:?} after the drain began");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_connects_in_a_drain_without_a_grace_has_time_to_ask() {
    let none = ConnectionSpec { exit_grace_s: 0.0, ..ConnectionSpec::default() };
    let endpoint = Endpoint::open(ListenerKind::Http, none, KeepaliveSpec::default(), []);
    let mut early = connect(&endpoint).await;
    endpoint.reach(Phase::Refusing);
    let (mut silent, mut late) = (endpoint.connect(), endpoint.connect());
    assert_eq!(early.rest().await, "");
    sleep(REFUSAL_TIME / 2).await;
    assert!(late.send(infer("echo")).await);
    assert_eq!(summary(&late.head().await), ("503", true));
    assert_eq!(silent.rest().await, "");
    assert!((REFUSAL_TIME..2 * REFUSAL_TIME).contains(&silent.age()), "{:?}", silent.age());
}

#[tokio::test(start_paused = true)]
async fn a_drain_does_not_wait_for_the_rest_of_a_head_but_says_so() {
    let endpoint = open(ListenerKind::Http);
    let mut connections = [connect(&endpoint).await, endpoint.connect()];
    for connection in &mut connections {
        assert!(connection.send(&LIVE[..20]).await);
    }
    sleep(Duration::from_millis(1)).await;
    endpoint.reach(Phase::Draining);
    for connection in &mut connections {
        let answer = connection.rest().await;
        assert_eq!(summary(&answer), ("503", true));
        assert!(answer.ends_with(UNFINISHED), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn late_requests_are_refused_with_the_reason() {
    let endpoint = open(ListenerKind::Http);
    let mut connections = [connect(&endpoint).await, endpoint.connect()];
    endpoint.reach(Phase::Refusing);
    sleep(Duration::from_millis(1)).await;
    connections[1] = endpoint.connect();
    for connection in &mut connections {
        assert!(connection.send(infer("echo")).await);
        assert_eq!(summary(&connection.head().await), ("503", true));
        assert_eq!(connection.rest().await, REFUSED);
    }
    for (path, status) in [("/v2/health/live", "200"), ("/v2/models/echo", "200"), ("/nowhere", "404")] {
        let mut connection = endpoint.connect();
        assert!(connection.send(LIVE.replace("/v2/health/live", path)).await);
        assert_eq!(summary(&connection.head().await), (status, true), "{path}");
    }
    let load = post("/v2/repository/models/echo/load", "{}");
    let mut connection = endpoint.connect();
    assert!(connection.send(load).await);
    assert_eq!(summary(&connection.head().await), ("503", true));
}

#[tokio::test(start_paused = true)]
async fn a_request_from_before_is_answered_however_long_it_takes() {
    let (endpoint, puppet) = open_puppet(false);
    let (mut running, mut sending) = (endpoint.connect(), endpoint.connect());
    assert!(running.send(infer("puppet")).await);
    let pending = puppet.take().await;
    let request = infer("puppet");
    let (begin, end) = request.split_at(request.len() - 5);
    assert!(sending.send(begin).await);
    sleep(Duration::from_millis(1)).await;
    endpoint.reach(Phase::Draining);
    sleep(Duration::from_secs(10)).await;
    endpoint.reach(Phase::Refusing);
    sleep(Duration::from_secs(20)).await;
    AnswerBatch::default().add(pending.responder, Ok(reply(1)));
    assert_eq!(summary(&running.head().await), ("200", true));
    assert!(running.rest().await.contains("\"outputs\""));
    // Its body was on its way.
    assert!(sending.send(end).await);
    AnswerBatch::default().add(puppet.take().await.responder, Ok(reply(1)));
    assert_eq!(summary(&sending.head().await), ("200", true));
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_cut_get_the_reason() {
    let (endpoint, puppet) = open_puppet(false);
    let [mut running, mut sending, mut within_head, mut idle] = std::array::from_fn(|_| endpoint.connect());
    assert!(running.send(infer("puppet")).await);
    let pending = puppet.take().await;
    assert!(sending.send(&infer("puppet")[..100]).await);
    assert!(within_head.send(&LIVE[..20]).await);
    assert!(idle.send(LIVE).await);
    idle.head().await;
    endpoint.reach(Phase::Cut);
    for connection in [&mut running, &mut sending, &mut within_head] {
        let answer = connection.rest().await;
        assert_eq!(summary(&answer), ("503", true));
        assert!(answer.ends_with(UNFINISHED), "{answer}");
    }
    assert_eq!(idle.rest().await, "");
    assert!(pending.responder.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn events_that_are_cut_end_with_the_reason() {
    let (endpoint, puppet) = open_puppet(true);
    let mut connection = endpoint.connect();
    assert!(connection.send(post("/v2/models/puppet/generate_stream", r#"{"X":1}"#)).await);
    let mut pending = puppet.take().await;
    AnswerBatch::default().respond(&mut pending.responder, Ok(reply(1)));
    assert_eq!(summary(&connection.head().await).0, "200");
    endpoint.reach(Phase::Cut);
    let events = connection.rest().await;
    assert!(events.contains("\"Y\"") && events.contains(&format!("data: {UNFINISHED}\n\n")), "{events}");
}

#[tokio::test(start_paused = true)]
async fn a_drain_tells_clients_of_http2_at_once_and_new_ones_after_a_call() {
    for kind in [ListenerKind::Http, ListenerKind::Grpc] {
        let endpoint = open(kind);
        let mut early = endpoint.connect();
        early.begin_http2(&[]).await;
        sleep(Duration::from_millis(1)).await;
        endpoint.reach(Phase::Draining);
        assert_eq!(early.next(GOAWAY).await.error_code(), 0);
        assert!(early.age() < EXIT_GRACE / 2, "{:?}", early.age());
        let mut late = endpoint.connect();
        late.begin_http2(&[]).await;
        assert!(late.send(get(1, "/v2/health/live")).await);
        loop {
            let frame = late.frame().await.expect("an answer");
            assert_ne!(frame.kind, GOAWAY, "the client is sent away before it was served");
            if frame.kind == HEADERS {
                break;
            }
        }
        late.next(GOAWAY).await;
        // Neither acknowledges anything, so the server closes.
        early.goaway().await;
        late.goaway().await;
        assert!(late.age() < 3 * REFUSAL_TIME, "{:?}", late.age());
    }
}

#[tokio::test(start_paused = true)]
async fn metrics_are_read_until_the_cut() {
    let endpoint = open(ListenerKind::Metrics);
    let mut idle = connect(&endpoint).await;
    for phase in [Phase::Draining, Phase::Refusing, Phase::Closing] {
        endpoint.reach(phase);
        sleep(Duration::from_secs(3)).await;
        let mut connection = endpoint.connect();
        assert!(connection.send(LIVE.replace("/v2/health/live", "/metrics")).await);
        assert_eq!(summary(&connection.head().await), ("200", true));
    }
    endpoint.reach(Phase::Cut);
    assert_eq!(idle.rest().await, NO_METRICS);
    assert!(idle.age() < Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_for_metrics_outlasts_a_minute() {
    let endpoint = open(ListenerKind::Metrics);
    let mut connection = connect(&endpoint).await;
    for _ in 0..3 {
        sleep(Duration::from_secs(60)).await;
        assert!(connection.send(LIVE).await);
        connection.head().await;
    }
    let answered = connection.age();
    assert_eq!(connection.rest().await, NO_METRICS);
    let idle = connection.age() - answered;
    assert!((METRICS_IDLE_TIME..2 * METRICS_IDLE_TIME).contains(&idle), "{idle:?}");
}
