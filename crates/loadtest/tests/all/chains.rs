//! Sequences: requests that one caller sends one after the other, each time under the next id.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use alipes_loadtest::{Engine, Ids, Loop, Plan};
use serde_json::Value;

use crate::support::{GOOD, LONGEST_WAIT, Server, closed, measured, open, plan_of_sequences, until};

/// A server that notes what it is asked.
fn listening() -> (Server, Arc<Mutex<Vec<Value>>>) {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let seen = bodies.clone();
    let server = Server::start(move |_, body| {
        seen.lock().unwrap().push(serde_json::from_slice(body).unwrap());
        Some(GOOD.to_owned())
    });
    (server, bodies)
}

/// Chains of three requests each: `a0`, `a1`, `a2`, `b0`, ...
fn chained(server: &Server, chains: usize, pace: Loop, count: Option<u64>) -> Plan {
    let names: Vec<String> =
        (0..chains * 3).map(|at| format!("{}{}", char::from(b'a' + (at / 3) as u8), at % 3)).collect();
    let bodies: Vec<&str> = names.iter().map(String::as_str).collect();
    plan_of_sequences(server.address, &bodies, 3, pace, count)
}

/// The requests of each sequence, in the order in which they came.
fn sequences(bodies: &Mutex<Vec<Value>>) -> BTreeMap<u64, String> {
    let mut sequences = BTreeMap::<u64, String>::new();
    for body in bodies.lock().unwrap().iter() {
        let id = body["parameters"]["sequence_id"].as_u64().expect("every request has the id of its sequence");
        sequences.entry(id).or_default().push_str(body["id"].as_str().unwrap());
    }
    let ids: Vec<u64> = sequences.keys().copied().collect();
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>(), "each sequence takes the next id");
    sequences
}

#[test]
fn a_single_chain_is_sent_again_and_again_from_its_beginning_under_new_ids() {
    let (server, bodies) = listening();
    let record = measured(chained(&server, 1, closed(3), Some(60)));
    assert_eq!((record.answers(), record.failures.len()), (60, 0));
    let sequences = sequences(&bodies);
    assert_eq!(sequences.len(), 20);
    assert!(sequences.values().all(|requests| requests == "a0a1a2"), "{sequences:?}");
}

#[test]
fn a_load_goes_on_with_the_ids_of_the_one_before() {
    let (server, bodies) = listening();
    let first = chained(&server, 1, closed(1), Some(6));
    measured(first.clone());
    measured(first);
    assert_eq!(sequences(&bodies).len(), 4);
}

#[test]
fn chains_take_their_turn_in_a_closed_loop() {
    let (server, bodies) = listening();
    assert_eq!(measured(chained(&server, 3, closed(1), Some(54))).answers(), 54);
    let mut counts = BTreeMap::<String, usize>::new();
    sequences(&bodies).into_values().for_each(|requests| *counts.entry(requests).or_default() += 1);
    let expected = ["a0a1a2", "b0b1b2", "c0c1c2"].map(|requests| (requests.to_owned(), 6));
    assert_eq!(counts, expected.into());
}

#[test]
fn a_sequence_that_has_begun_is_ended_although_the_count_is_reached() {
    let (server, _) = listening();
    assert_eq!(measured(chained(&server, 2, closed(1), Some(4))).answers(), 6);
}

#[test]
fn the_requests_of_a_sequence_come_in_order_in_an_open_loop() {
    let (server, bodies) = listening();
    let record = measured(chained(&server, 2, open(2000.0, 4), Some(120)));
    // Sequences that are under way at the end are cut short, and ended.
    assert!((120..=124).contains(&record.answers()) && record.failures.is_empty(), "{record:?}");
    sequences(&bodies).values().for_each(|requests| is_whole(requests));
}

/// Whether a sequence was sent from its beginning to its end; it may have been cut short.
fn is_whole(requests: &str) {
    let of = |name: char, steps: &[usize]| steps.iter().map(|step| format!("{name}{step}")).collect::<String>();
    let name = requests.chars().next().unwrap();
    let known = [of(name, &[0, 1, 2]), of(name, &[0, 2])];
    assert!(known.iter().any(|known| known == requests), "{requests}");
}

#[test]
fn sequences_under_way_are_cut_short_when_the_load_is_stopped() {
    for pace in [closed(2), open(2000.0, 2)] {
        let (server, bodies) = listening();
        let mut engine = Engine::start(chained(&server, 1, pace, None)).unwrap();
        until("some requests", || server.seen() > 20);
        engine.stop(LONGEST_WAIT).unwrap();
        sequences(&bodies).values().for_each(|requests| is_whole(requests));
    }
}

#[test]
fn no_more_sequences_than_allowed_are_under_way() {
    let (server, bodies) = listening();
    let mut plan = chained(&server, 2, open(5000.0, 8), Some(30));
    plan.sources[0].sequences.as_mut().unwrap().most = NonZeroUsize::new(1);
    measured(plan);
    let order: Vec<u64> =
        bodies.lock().unwrap().iter().map(|body| body["parameters"]["sequence_id"].as_u64().unwrap()).collect();
    assert!(order.is_sorted(), "one sequence after the other: {order:?}");
}

#[test]
fn what_cannot_be_sent_as_sequences_is_refused() {
    let (server, _) = listening();
    let refused = |plan: Plan| Engine::start(plan).err().expect("it has begun").message;
    let mut few = chained(&server, 2, closed(3), None);
    few.sources[0].sequences.as_mut().unwrap().ids = Arc::new(Ids::new(7..9));
    let text = refused(few);
    assert!(text.contains("3 callers need as many sequences under way: there may be 2"), "{text}");
    let mut beyond = chained(&server, 2, closed(1), None);
    beyond.sources[0].sequences.as_mut().unwrap().chains[1] = 3..7;
    assert!(refused(beyond).contains("no requests"));
    let mut alone = chained(&server, 2, closed(1), None);
    alone.sources[0].sequences = None;
    assert!(refused(alone).contains("another protocol"), "a request without the id of a sequence is not sent");
}

#[test]
fn a_sequence_waits_for_its_last_answer_although_more_is_due() {
    let (server, bodies) = listening();
    let mut engine = Engine::start(chained(&server, 1, open(5000.0, 8), Some(30))).unwrap();
    until("the end of the load", || engine.is_done());
    engine.stop(Duration::ZERO).unwrap();
    sequences(&bodies).values().for_each(|requests| is_whole(requests));
}
