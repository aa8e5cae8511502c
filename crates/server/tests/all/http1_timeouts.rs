//! HTTP/1 clients that send too little or too slowly, or do not read: each limit on a clock that jumps.

use std::time::Duration;

use alipes_net::policy::ListenerKind;

use crate::memory::Endpoint;

const LIVE: &str = "GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n";

fn head(path: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n")
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_nothing_at_all_is_let_go() {
    let mut connection = Endpoint::impatient(ListenerKind::Http).connect();
    assert!(connection.rest().await.starts_with("HTTP/1.1 408 "));
    assert!((seconds(4.0)..seconds(7.0)).contains(&connection.age()), "{:?}", connection.age());
}

#[tokio::test(start_paused = true)]
async fn a_head_that_drips_in_is_not_waited_for() {
    let mut connection = Endpoint::impatient(ListenerKind::Http).connect();
    let slow = format!("GET /v2/health/live HTTP/1.1\r\nX-Slow: {}", "a".repeat(300));
    let answer = connection.drip(slow.as_bytes(), seconds(0.05)).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!((seconds(4.0)..seconds(7.0)).contains(&connection.age()), "{:?}", connection.age());
}

#[tokio::test(start_paused = true)]
async fn a_second_head_is_not_waited_for_longer_than_the_first() {
    let mut connection = Endpoint::impatient(ListenerKind::Http).connect();
    assert!(connection.send(LIVE).await);
    assert!(connection.head().await.starts_with("HTTP/1.1 200 "));
    let slow = format!("{}{}", &LIVE[..LIVE.len() - 1], " ".repeat(300));
    assert!(connection.drip(slow.as_bytes(), seconds(0.05)).await.starts_with("HTTP/1.1 408 "));
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_after_a_while() {
    let mut connection = Endpoint::impatient(ListenerKind::Http).connect();
    for _ in 0..3 {
        assert!(connection.send(LIVE).await);
        assert!(connection.head().await.starts_with("HTTP/1.1 200 "));
        tokio::time::sleep(seconds(25.0)).await;
    }
    let answered = connection.age();
    assert_eq!(connection.rest().await, "");
    assert!(connection.age() - answered > seconds(30.0), "closed {:?} later", connection.age() - answered);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_body_gets_an_error_and_its_connection_closes() {
    let mut connection = Endpoint::impatient(ListenerKind::Http).connect();
    assert!(connection.send(head("/v2/models/echo/infer", 1000) + "{\"inputs\":").await);
    let answer = connection.rest().await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(answer.contains("fewer than 4096 bytes came in 5 s"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_drips_in_is_not_waited_for() {
    let mut connection = Endpoint::impatient(ListenerKind::Http).connect();
    assert!(connection.send(head("/v2/models/echo/infer", 1 << 20)).await);
    let answer = connection.drip(&[b' '; 500], seconds(0.05)).await;
    assert!(answer.contains(" 400 ") || answer.is_empty(), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_slow_but_steady_is_waited_for() {
    let mut connection = Endpoint::impatient(ListenerKind::Http).connect();
    let body = br#"{"inputs":[{"name":"X","datatype":"FP32","shape":[1],"data":[1]}]}"#;
    let padding = vec![b' '; 4096];
    assert!(connection.send(head("/v2/models/echo/infer", body.len() + 10 * padding.len())).await);
    for _ in 0..10 {
        assert!(connection.send(&padding).await);
        tokio::time::sleep(seconds(4.0)).await;
    }
    assert!(connection.send(body).await);
    assert!(connection.head().await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test(start_paused = true)]
async fn a_refused_body_that_never_comes_holds_nothing() {
    for path in ["/v2/models/absent/infer", "/v2/repository/index", "/nowhere"] {
        let mut connection = Endpoint::impatient(ListenerKind::Http).connect();
        assert!(connection.send(head(path, 1 << 20) + "{").await);
        let answer = connection.rest().await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{path}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_reads_is_thrown_away() {
    let mut connection = Endpoint::impatient(ListenerKind::Http).connect_with_buffer(64);
    assert!(connection.send("GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n").await);
    tokio::time::sleep(seconds(6.0)).await;
    // What the buffer held, and no more: the server has closed.
    assert_eq!(connection.rest().await.len(), 64);
}
