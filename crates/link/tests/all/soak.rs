//! Many threads at both ends for a while: nothing is lost, and nothing comes twice.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use crate::common::*;
use alipes_link::{
    Claimed, Geometry, Message, OutAnswer, OutMessage, Outcome, OutputData, Placed, Request, ServerEnd, WorkerEnd,
};
use bytes::Bytes;

const REQUESTS: u64 = 20_000;
const SLOTS: u32 = 32;

/// The bytes that belong to a ticket: a few, or now and then so many that they are lent.
fn payload(ticket: u64) -> Vec<u8> {
    let len = if ticket.is_multiple_of(50) { 70_000 } else { ticket as usize % 300 + 8 };
    let mut bytes = vec![ticket as u8; len];
    bytes[..8].copy_from_slice(&ticket.to_le_bytes());
    bytes
}

struct Serving {
    server: ServerEnd,
    arena: Arc<alipes_link::RequestArena>,
    free: Vec<u32>,
    open: HashMap<u64, (u32, Placed)>,
    next: u64,
    revoked: HashSet<u64>,
    answered: u64,
    dice: u64,
}

impl Serving {
    fn roll(&mut self, end: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % end
    }

    fn publish(&mut self) {
        let count = (self.roll(6) as usize + 1).min(self.free.len()).min((REQUESTS + 1 - self.next) as usize);
        let mut entries = Vec::new();
        for _ in 0..count {
            let (slot, ticket) = (self.free.pop().unwrap(), self.next);
            self.next += 1;
            let placed = place(&self.arena, &Bytes::from(payload(ticket)));
            entries.push(entry(slot, ticket, &placed));
            self.open.insert(ticket, (slot, placed));
        }
        if self.server.publish(&entries).is_none() {
            // Full of revoked entries: these requests are placed again, under new numbers.
            self.next -= count as u64;
            entries.iter().for_each(|entry| self.free.push(self.open.remove(&entry.ticket).unwrap().0));
        }
        self.server.wake();
    }

    fn revoke_one(&mut self) {
        let open: Vec<u64> = self.open.keys().copied().collect();
        if open.is_empty() {
            return;
        }
        let ticket = open[self.roll(open.len() as u64) as usize];
        let slot = self.open[&ticket].0;
        if self.server.revoke(slot, ticket) {
            self.open.remove(&ticket);
            self.free.push(slot);
            assert!(self.revoked.insert(ticket));
        }
    }

    fn drain(&mut self) {
        while let Some(message) = self.server.receive().unwrap() {
            match message {
                Message::Answer(answer) => self.settle(answer),
                Message::Answers { answers, .. } => answers.into_iter().for_each(|answer| self.settle(answer)),
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    fn settle(&mut self, answer: alipes_link::Answer) {
        let (slot, _) = self.open.remove(&answer.ticket).expect("answered once, and not revoked");
        assert_eq!(slot, answer.slot);
        let Outcome::Response { outputs, .. } = answer.outcome else { panic!("no response") };
        let OutputData::Bytes(bytes) = &outputs[0].data else { panic!("no bytes") };
        assert_eq!(bytes, &payload(answer.ticket));
        self.free.push(slot);
        self.answered += 1;
    }
}

/// Claims, and hands every request to one of several threads that answer.
fn work(worker: Arc<WorkerEnd>, claimed: Arc<AtomicU64>) {
    let (give, take) = mpsc::channel::<Vec<Request>>();
    let take = Arc::new(Mutex::new(take));
    let answerers: Vec<_> = (0..3)
        .map(|_| {
            let (worker, take) = (worker.clone(), take.clone());
            std::thread::spawn(move || {
                loop {
                    let Ok(requests) = take.lock().unwrap().recv() else { break };
                    answer_all(&worker, &requests);
                }
            })
        })
        .collect();
    let mut requests = Vec::new();
    while worker.claim(4, &mut requests) == Claimed::Requests {
        claimed.fetch_add(requests.len() as u64, Ordering::Relaxed);
        give.send(std::mem::take(&mut requests)).unwrap();
    }
    drop(give);
    answerers.into_iter().for_each(|thread| thread.join().unwrap());
}

fn answer_all(worker: &WorkerEnd, requests: &[Request]) {
    let answers: Vec<OutAnswer<'_>> = requests
        .iter()
        .map(|request| answer(request.slot, request.ticket, vec![tensor(input(worker, request))]))
        .collect();
    match answers.as_slice() {
        [one] => worker.send(&OutMessage::Answer(one)).unwrap(),
        all => worker.send(&OutMessage::Answers { times: None, tickets: &[], answers: all }).unwrap(),
    }
}

#[test]
fn every_request_is_answered_or_revoked_exactly_once() {
    // So little memory for responses that senders wait for it.
    let Pair { arena, server, worker } = pair_of(Geometry { slots: SLOTS, response_bytes: 512 << 10 });
    let claimed = Arc::new(AtomicU64::new(0));
    let working = std::thread::spawn({
        let (worker, claimed) = (worker.clone(), claimed.clone());
        move || work(worker, claimed)
    });
    let free = (0..SLOTS).collect();
    let mut serving =
        Serving { server, arena, free, open: HashMap::new(), next: 1, revoked: HashSet::new(), answered: 0, dice: 1 };
    while serving.next <= REQUESTS || !serving.open.is_empty() {
        if serving.next <= REQUESTS && !serving.free.is_empty() {
            serving.publish();
        }
        if serving.roll(3) == 0 {
            serving.revoke_one();
        }
        serving.drain();
        if serving.free.is_empty() || serving.next > REQUESTS && !serving.open.is_empty() {
            sleep_until_rung(&serving.server);
        }
    }
    serving.server.stop();
    working.join().unwrap();
    assert_eq!(serving.answered + serving.revoked.len() as u64, REQUESTS);
    assert_eq!(claimed.load(Ordering::Relaxed), serving.answered);
    assert!(!serving.revoked.is_empty());
    assert_eq!(serving.arena.used_bytes(), 0);
}

#[test]
fn of_claim_and_revoke_exactly_one_wins() {
    let Pair { arena, mut server, worker } = pair();
    let placed = place(&arena, &Bytes::new());
    let claimer = std::thread::spawn({
        let worker = worker.clone();
        move || {
            let (mut claimed, mut requests) = (HashSet::new(), Vec::new());
            while worker.claim(0, &mut requests) == Claimed::Requests {
                for request in requests.drain(..) {
                    assert!(claimed.insert(request.ticket), "claimed twice");
                    send_answer(&worker, request.slot, request.ticket, b"");
                }
            }
            claimed
        }
    });
    let mut revoked = HashSet::new();
    for ticket in 1..=5000u64 {
        // Full of revoked requests, where the claimer had no processor for a while.
        while server.publish(&[entry(0, ticket, &placed)]).is_none() {
            sleep_until_rung(&server);
        }
        server.wake();
        (0..ticket % 97 * 20).for_each(|_| std::hint::spin_loop());
        if server.revoke(0, ticket) {
            revoked.insert(ticket);
        } else {
            // Then its answer comes, and only its.
            while server.receive().unwrap().is_none() {
                sleep_until_rung(&server);
            }
        }
    }
    server.stop();
    let claimed = claimer.join().unwrap();
    assert!(claimed.is_disjoint(&revoked));
    assert_eq!(claimed.len() + revoked.len(), 5000);
}
