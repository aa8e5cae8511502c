//! Closed and open loops, and what becomes of failures.

use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use alipes_loadtest::Engine;

use crate::support::{GOOD, LONGEST_WAIT, Server, closed, held, measured, only, open, plan, until};

#[test]
fn a_closed_loop_sends_so_many_requests_in_turn() {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let seen = bodies.clone();
    let server = Server::start(move |_, body| {
        seen.lock().unwrap().push(String::from_utf8(body.to_vec()).unwrap());
        Some(GOOD.to_owned())
    });
    let record = measured(plan(server.address, &["a", "bc"], closed(4), Some(10)));
    assert_eq!((record.answers(), record.received_bytes, record.failures.len()), (10, 20, 0));
    assert_eq!(record.connections, server.connections.load(Ordering::SeqCst) as u64);
    let mut bodies = bodies.lock().unwrap().clone();
    bodies.sort();
    assert_eq!(bodies, ["a", "a", "a", "a", "a", "bc", "bc", "bc", "bc", "bc"]);
    assert!(record.samples.all.iter().all(|sample| sample.answer == "ok"));
}

#[test]
fn a_closed_loop_leaves_out_what_a_stall_costs_and_an_open_one_counts_it() {
    let (answer, release) = held();
    let server = Server::start(answer);
    let mut engine = Engine::start(plan(server.address, &["x"], closed(1), None)).unwrap();
    until("the first request", || server.seen() == 1);
    thread::park_timeout(Duration::from_millis(50));
    assert_eq!(server.seen(), 1, "the only caller waits");
    release.send(()).unwrap();
    until("further requests", || server.seen() > 10);
    engine.stop(LONGEST_WAIT).unwrap();

    let (answer, release) = held();
    let server = Server::start(answer);
    let mut engine = Engine::start(plan(server.address, &["x"], open(1000.0, 1), Some(20))).unwrap();
    until("the first request", || server.seen() == 1);
    let stalled = alipes_clock::now();
    thread::park_timeout(Duration::from_millis(200));
    let stall = alipes_clock::elapsed(stalled);
    release.send(()).unwrap();
    until("the end of the load", || engine.is_done());
    engine.stop(Duration::ZERO).unwrap();
    let record = only(&engine);
    assert_eq!(record.answers(), 20);
    // The last of them was due 20 ms after the first.
    let shortest = stall.saturating_sub(Duration::from_millis(25)).as_nanos() as u64;
    assert!(record.latencies.min() >= shortest, "{} after {stall:?}", record.latencies.min());
}

#[test]
fn a_refused_request_is_counted_by_its_text() {
    let refusal = r#"{"error":"no such model"}"#;
    let text = format!("HTTP/1.1 404 Not Found\r\nContent-Length: {}\r\n\r\n{refusal}", refusal.len());
    let server = Server::start(move |number, _| Some(if number % 2 == 0 { text.clone() } else { GOOD.to_owned() }));
    let record = measured(plan(server.address, &["x"], closed(1), Some(10)));
    assert_eq!((record.answers(), record.failures["no such model"], record.connections), (5, 5, 1));
}

#[test]
fn connections_that_the_server_ends_are_opened_again() {
    let closing = GOOD.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    let server = Server::start(move |_, _| Some(closing.clone()));
    let record = measured(plan(server.address, &["x"], closed(2), Some(6)));
    assert_eq!((record.answers(), record.connections, record.failures.len()), (6, 6, 0));
}

#[test]
fn a_server_that_is_not_there_is_a_failure_and_no_end() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut engine = Engine::start(plan(gone, &["x"], closed(1), None)).unwrap();
    let mut failures = 0;
    until("two failures", || {
        failures += only(&engine).failures.values().sum::<u64>();
        failures >= 2
    });
    engine.stop(Duration::ZERO).unwrap();
}

#[test]
fn a_server_that_hangs_up_on_every_request_is_a_failure_each_time() {
    let server = Server::start(|_, _| None);
    let record = measured(plan(server.address, &["x"], closed(1), Some(3)));
    assert_eq!((record.answers(), record.failures.values().sum::<u64>()), (0, 3));
}

#[test]
fn stopping_cuts_off_a_server_that_never_answers() {
    let (answer, _release) = held();
    let server = Server::start(answer);
    let mut engine = Engine::start(plan(server.address, &["x"], open(100.0, 1), None)).unwrap();
    until("the first request", || server.seen() == 1);
    thread::park_timeout(Duration::from_millis(50));
    engine.stop(Duration::from_millis(10)).unwrap();
    assert!(engine.is_done());
    let record = only(&engine);
    assert_eq!(record.answers(), 0);
    assert!(record.dropped > 0, "what waited for the connection was never sent");
}

#[test]
fn a_plan_without_requests_is_refused() {
    let address = "127.0.0.1:1".parse().unwrap();
    assert!(Engine::start(plan(address, &[], closed(1), None)).is_err());
}
