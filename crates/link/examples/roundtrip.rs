//! What the link costs: an identity of 4 KiB between two processes, with and without spinning.
//!
//! ```text
//! cargo run --release -p alipes-link --example roundtrip
//! ```
//!
//! The server's side waits for the doorbell with poll(2), as its event loop does. Times are of this machine at this
//! moment: compare them with each other, not with those of another day.

#![allow(clippy::disallowed_methods, reason = "figures are taken on the clock of the system")]

use std::collections::HashMap;
use std::env;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use alipes_link::{
    Claimed, Entry, Geometry, Message, OutAnswer, OutData, OutMessage, OutOutcome, OutTensor, Placed, RequestArena,
    RequestHead, ServerEnd, TensorName, TensorRef, WorkerEnd, monotonic_ns,
};
use alipes_protocol::{CorrelationId, Datatype};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{FdFlags, fcntl_setfd};

/// Descriptors and spin of the worker: `link,requests,doorbell,spin_us`.
const ROLE: &str = "ALIPES_LINK_ROUNDTRIP";
const TENSOR_BYTES: usize = 4096;
const SLOTS: u32 = 64;
const BATCH: u32 = 8;
const TURNS: usize = 20_000;

fn main() {
    if let Ok(role) = env::var(ROLE) {
        return work(&role);
    }
    for spin in [Duration::ZERO, Duration::from_micros(50)] {
        let mut bench = Bench::new(spin);
        let spin = format!("spin {:>2} us", spin.as_micros());
        let mut one = bench.turns(1);
        println!("{spin}: one request           {}", summary(&mut one));
        let mut batches = bench.turns(BATCH);
        println!("{spin}: {BATCH} into an empty ring {}", summary(&mut batches));
        let mut filled = bench.filled();
        println!("{spin}: {BATCH} of a filled ring   {}", summary(&mut filled));
        println!("{spin}: an empty ring costs a batch {:.1} us", median(&mut batches) - median(&mut filled));
    }
}

/// The worker: answers with what it is asked.
fn work(role: &str) {
    let numbers: Vec<u64> = role.split(',').map(|number| number.parse().unwrap()).collect();
    // SAFETY: the server's side left these open for us, and nobody else in this process knows of them.
    let fd = |index: usize| unsafe { OwnedFd::from_raw_fd(numbers[index] as RawFd) };
    let end = WorkerEnd::open(fd(0), fd(1), fd(2)).unwrap();
    end.set_spin(Duration::from_micros(numbers[3]));
    let mut requests = Vec::new();
    while end.claim(BATCH, &mut requests) == Claimed::Requests {
        let answers: Vec<OutAnswer<'_>> = requests
            .iter()
            .map(|request| {
                let view = &request.inputs[0];
                let address = end.memory().at(view.offset, view.len).unwrap();
                // SAFETY: in the mapping; the server leaves it alone until it is released.
                let data = OutData::Bytes(unsafe { std::slice::from_raw_parts(address.as_ptr(), view.len) });
                let name = TensorName::Index(0);
                let outputs = vec![OutTensor { name, datatype: view.datatype, shape: view.shape.clone(), data }];
                let outcome = OutOutcome::Response { outputs, parameters: &[] };
                OutAnswer { slot: request.slot, ticket: request.ticket, last: true, released: true, outcome }
            })
            .collect();
        end.send(&OutMessage::Answers { times: None, tickets: &[], answers: &answers }).unwrap();
        requests.clear();
    }
}

struct Bench {
    arena: Arc<RequestArena>,
    server: ServerEnd,
    worker: Child,
    data: Bytes,
    open: HashMap<u64, Placed>,
    next: u64,
}

impl Bench {
    fn new(spin: Duration) -> Bench {
        let arena = RequestArena::create(1 << 30).unwrap();
        let server = ServerEnd::create(Geometry { slots: SLOTS, response_bytes: 1 << 30 }).unwrap();
        let fds = [inherited(server.link_fd()), inherited(arena.fd()), inherited(server.doorbell_fd())];
        let numbers: Vec<String> = fds.iter().map(|fd| std::os::fd::AsRawFd::as_raw_fd(fd).to_string()).collect();
        let role = format!("{},{}", numbers.join(","), spin.as_micros());
        let worker = Command::new(env::current_exe().unwrap()).env(ROLE, role).spawn().unwrap();
        let data = Bytes::from(vec![7; TENSOR_BYTES]);
        let mut bench = Bench { arena, server, worker, data, open: HashMap::new(), next: 1 };
        // The first answer says that the worker is there.
        (0..1000).for_each(|_| {
            bench.turn(1);
        });
        bench
    }

    /// Places and publishes a batch; slots follow the tickets.
    fn publish(&mut self, count: u32) {
        let head = RequestHead {
            id: "",
            correlation_id: &CorrelationId::Number(0),
            flags: 0,
            timeout_us: 0,
            priority: 0,
            parameters: "",
            outputs: &[0],
            trace: None,
        };
        let shape = [TENSOR_BYTES as i64];
        let mut entries = Vec::new();
        for ticket in self.next..self.next + u64::from(count) {
            let input =
                TensorRef { name: TensorName::Index(0), datatype: Datatype::Uint8, shape: &shape, data: &self.data };
            let placed = self.arena.write_request(&head, &[input]).unwrap();
            let slot = (ticket % u64::from(SLOTS)) as u32;
            entries.push(Entry { slot, ticket, rows: 1, key: 0, group: 0, frame: (placed.offset, placed.len) });
            self.open.insert(ticket, placed);
        }
        self.next += u64::from(count);
        self.server.publish(&entries).unwrap();
        self.server.wake();
    }

    /// Receives until so many are answered.
    fn receive(&mut self, mut count: u32) {
        while count > 0 {
            let Some(message) = self.server.receive().unwrap() else {
                if self.server.arm() {
                    let doorbell = self.server.doorbell_fd();
                    poll(&mut [PollFd::new(&doorbell, PollFlags::IN)], None).unwrap();
                    rustix::io::read(doorbell, &mut [0; 8]).unwrap();
                }
                continue;
            };
            let Message::Answers { answers, .. } = message else { panic!("unexpected {message:?}") };
            count -= answers.len() as u32;
            answers.iter().for_each(|answer| drop(self.open.remove(&answer.ticket)));
        }
    }

    fn turn(&mut self, count: u32) -> u64 {
        let began = monotonic_ns();
        self.publish(count);
        self.receive(count);
        monotonic_ns() - began
    }

    fn turns(&mut self, count: u32) -> Vec<u64> {
        (0..TURNS).map(|_| self.turn(count)).collect()
    }

    /// As `turns`, while the worker never finds its ring empty.
    fn filled(&mut self) -> Vec<u64> {
        let ahead = SLOTS / BATCH / 2;
        (0..ahead).for_each(|_| self.publish(BATCH));
        let times = (0..TURNS)
            .map(|_| {
                let began = monotonic_ns();
                self.receive(BATCH);
                self.publish(BATCH);
                monotonic_ns() - began
            })
            .collect();
        (0..ahead).for_each(|_| self.receive(BATCH));
        times
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.server.stop();
        self.worker.wait().unwrap();
    }
}

/// A copy of a descriptor that the worker keeps.
fn inherited(fd: BorrowedFd<'_>) -> OwnedFd {
    let copy = fd.try_clone_to_owned().unwrap();
    fcntl_setfd(copy.as_fd(), FdFlags::empty()).unwrap();
    copy
}

fn median(times: &mut [u64]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2] as f64 / 1000.0
}

fn summary(times: &mut [u64]) -> String {
    let median = median(times);
    let mean = times.iter().sum::<u64>() as f64 / times.len() as f64 / 1000.0;
    let tail = times[times.len() * 99 / 100] as f64 / 1000.0;
    format!("{median:6.1} us in the median, {mean:6.1} in the mean, {tail:6.1} at 99 %")
}
