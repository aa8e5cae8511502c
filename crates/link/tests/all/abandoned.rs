//! A worker's end whose server has let go of the link while its own process lives on.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use crate::common::*;
use alipes_link::{Claimed, Credit, Geometry, OutAnswer, OutMessage, OutOutcome, OutTensor, ServerEnd, WorkerEnd};
use alipes_link::{OutData, TensorName};
use alipes_protocol::Datatype;
use bytes::Bytes;

/// Waits on a thread of its own, and says when the wait is over.
fn waits(worker: &Arc<WorkerEnd>, over: &Sender<&'static str>, name: &'static str, wait: fn(&WorkerEnd)) {
    let (worker, over) = (Arc::clone(worker), over.clone());
    thread::spawn(move || {
        wait(&worker);
        over.send(name).unwrap();
    });
}

fn claimed(pair: &mut Pair) {
    let placed = place(&pair.arena, &Bytes::from_static(b"abc"));
    pair.server.publish(&[entry(3, 70, &placed)]).unwrap();
    claim(&pair.worker, 0);
}

#[test]
fn abandoning_ends_every_wait_of_the_worker() {
    let mut pair = pair();
    claimed(&mut pair);
    let (over, ended) = channel();
    let worker = &pair.worker;
    waits(worker, &over, "claim", |worker| assert_eq!(worker.claim(0, &mut Vec::new()), Claimed::Stop));
    waits(worker, &over, "check", |worker| assert_eq!(worker.next_check(0), None));
    waits(worker, &over, "mail", |worker| assert!(worker.next_mail(None).is_none()));
    waits(worker, &over, "credit", |worker| {
        let most = WorkerEnd::MAX_WAITING_RESPONSES;
        assert_eq!(worker.wait_credit(3, 70, most, 0), Credit::CallerLeft);
    });
    assert!(ended.recv_timeout(Duration::from_millis(50)).is_err(), "nothing ends a wait before that");
    assert!(!worker.is_abandoned());
    worker.abandon();
    let mut names = [(); 4].map(|()| ended.recv().unwrap());
    names.sort_unstable();
    assert_eq!(names, ["check", "claim", "credit", "mail"]);
}

#[test]
fn messages_of_an_abandoned_link_go_nowhere() {
    let Pair { arena, .. } = pair();
    let server = ServerEnd::create(Geometry { slots: 4, response_bytes: 1 << 20 }).unwrap();
    let worker = open_worker(&arena, &server);
    let (over, ended) = channel();
    // The server takes nothing, so that the second of these finds no room for its tensor, and waits.
    waits(&worker, &over, "sent", |worker| {
        let data = vec![0; 700_000];
        for ticket in 1..=2 {
            answer(worker, ticket, &data);
        }
    });
    assert!(ended.recv_timeout(Duration::from_millis(50)).is_err(), "the link is full");
    worker.abandon();
    assert_eq!(ended.recv().unwrap(), "sent");
    let released = OutMessage::Released { lease: 5 };
    (0..10_000).for_each(|_| worker.send(&released).unwrap());
    assert_eq!(worker.try_send(&released), Ok(true));
    assert_eq!(worker.try_send_quietly(&released), Ok(true));
}

#[test]
fn a_server_that_asks_to_leave_does_not_revive_a_link() {
    let Pair { server, worker, .. } = pair();
    worker.abandon();
    server.stop();
    assert!(worker.is_abandoned());
    assert_eq!(worker.claim(0, &mut Vec::new()), Claimed::Stop);
}

fn answer(worker: &WorkerEnd, ticket: u64, data: &[u8]) {
    let shape = [data.len() as i64].into_iter().collect();
    let (name, datatype) = (TensorName::Index(0), Datatype::Uint8);
    let output = OutTensor { name, datatype, shape, data: OutData::Bytes(data) };
    let outcome = OutOutcome::Response { outputs: vec![output], parameters: &[] };
    let answer = OutAnswer { slot: 0, ticket, last: true, released: true, outcome };
    worker.send(&OutMessage::Answer(&answer)).unwrap();
}
