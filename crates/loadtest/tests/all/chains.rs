//! Requests that one caller sends one after the other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use alipes_loadtest::{Engine, Loop, Plan};

use crate::support::{GOOD, LONGEST_WAIT, Server, closed, measured, open, plan, until};

/// A server that notes what it is asked.
fn listening() -> (Server, Arc<Mutex<Vec<String>>>) {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let seen = bodies.clone();
    let server = Server::start(move |_, body| {
        seen.lock().unwrap().push(String::from_utf8(body.to_vec()).unwrap());
        Some(GOOD.to_owned())
    });
    (server, bodies)
}

/// Chains of three requests each: `a0`, `a1`, `a2`, `b0`, ...
fn chained(server: &Server, chains: usize, pace: Loop, count: Option<u64>) -> Plan {
    let names: Vec<String> =
        (0..chains * 3).map(|at| format!("{}{}", char::from(b'a' + (at / 3) as u8), at % 3)).collect();
    let bodies: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut plan = plan(server.address, &bodies, pace, count);
    plan.sources[0].chains = (0..chains).map(|chain| chain * 3..chain * 3 + 3).collect();
    plan
}

/// The steps of each chain, in the order in which they came.
fn steps(bodies: &Mutex<Vec<String>>) -> BTreeMap<char, String> {
    let mut steps = BTreeMap::<char, String>::new();
    for body in bodies.lock().unwrap().iter() {
        let (name, step) = body.split_at(1);
        steps.entry(name.chars().next().unwrap()).or_default().push_str(step);
    }
    steps
}

#[test]
fn the_requests_of_a_chain_come_in_order_in_a_closed_loop() {
    let (server, bodies) = listening();
    let record = measured(chained(&server, 5, closed(3), Some(60)));
    assert_eq!((record.answers(), record.failures.len()), (60, 0));
    for (name, steps) in steps(&bodies) {
        assert_eq!(steps, "012".repeat(steps.len() / 3), "{name}");
    }
}

#[test]
fn a_chain_that_has_begun_is_ended_although_the_count_is_reached() {
    let (server, _) = listening();
    assert_eq!(measured(chained(&server, 2, closed(1), Some(4))).answers(), 6);
}

#[test]
fn the_requests_of_a_chain_come_in_order_in_an_open_loop() {
    let (server, bodies) = listening();
    let record = measured(chained(&server, 4, open(2000.0, 4), Some(120)));
    // Chains that are under way at the end are cut short, and ended.
    assert!((120..=124).contains(&record.answers()) && record.failures.is_empty(), "{record:?}");
    let steps = steps(&bodies);
    assert_eq!(steps.len(), 4, "all chains take their turn: {steps:?}");
    for (name, steps) in steps {
        is_whole(name, &steps);
    }
}

/// Whether all chains were sent to their end, but the last one may have been cut short.
fn is_whole(name: char, steps: &str) {
    assert!(steps.ends_with('2'), "{name} is open: {steps}");
    let tail = steps.trim_start_matches("012");
    assert!(["", "02"].contains(&tail), "{name}: {tail}");
}

#[test]
fn chains_under_way_are_cut_short_when_the_load_is_stopped() {
    for pace in [closed(2), open(2000.0, 2)] {
        let (server, bodies) = listening();
        let mut engine = Engine::start(chained(&server, 2, pace, None)).unwrap();
        until("some requests", || server.seen() > 20);
        engine.stop(LONGEST_WAIT).unwrap();
        for (name, steps) in steps(&bodies) {
            is_whole(name, &steps);
        }
    }
}

#[test]
fn callers_without_a_chain_of_their_own_are_refused() {
    let (server, _) = listening();
    let Err(error) = Engine::start(chained(&server, 2, closed(3), None)) else { panic!("it has begun") };
    assert!(
        error.message.contains("3 callers need as many chains") && error.message.contains("there are 2"),
        "{error}"
    );
    let mut wrong = chained(&server, 2, closed(1), None);
    wrong.sources[0].chains[1] = 3..7;
    assert!(Engine::start(wrong).is_err(), "a chain beyond the requests");
}

#[test]
fn a_chain_waits_for_its_last_answer_although_more_is_due() {
    let (server, bodies) = listening();
    let mut engine = Engine::start(chained(&server, 1, open(5000.0, 8), Some(30))).unwrap();
    until("the end of the load", || engine.is_done());
    engine.stop(Duration::ZERO).unwrap();
    assert_eq!(steps(&bodies)[&'a'], "012".repeat(10));
}
