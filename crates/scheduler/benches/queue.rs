//! What one request costs the queue of a model: submitted, and taken in a batch of eight, while so many others wait, or
//! beside so many live sequences.
//!
//! `cargo bench -p alipes-scheduler`

#![allow(clippy::disallowed_methods, reason = "figures are taken on the clock of the system")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use alipes_scheduler::sequence::{SequencePolicy, SequenceQueue, StartThreshold, Strategy};
use alipes_scheduler::{
    DynamicPolicy, Membership, ModelQueue, Next, Priorities, Queue, QueuePolicy, Scheduler, SequenceId, SlotId, Work,
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Requests that wait, or sequences that live.
const COUNTS: [u64; 3] = [10, 1_000, 100_000];

/// Requests that come and go in one round.
const ROUND: u64 = 8;

/// As large as what a server queues.
#[derive(Debug)]
struct Request {
    number: u64,
    deadline: Option<Instant>,
    slot_id: SlotId,
    is_start: bool,
    _rest: [u64; 36],
}

impl Request {
    fn new(number: u64) -> Request {
        Request { number, deadline: None, slot_id: SlotId::default(), is_start: false, _rest: [0; 36] }
    }
}

impl Work for Request {
    fn rows(&self) -> u32 {
        1
    }

    fn priority(&self) -> u64 {
        1 + self.number % 3
    }

    fn timeout(&self) -> Duration {
        // Every request brings another deadline, so that they are not in the order of arrival.
        Duration::from_millis(1_000_000 + self.number * 7919 % 1_000_000)
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    fn sequence_id(&self) -> Option<SequenceId> {
        Some(SequenceId::Number(self.number))
    }

    fn membership(&self) -> Membership {
        Membership { start: self.is_start, end: false }
    }

    fn assign_slot(&mut self, slot_id: SlotId) {
        self.slot_id = slot_id;
    }

    fn slot_id(&self) -> SlotId {
        self.slot_id
    }
}

fn dynamic(priorities: Priorities) -> Scheduler<Request> {
    Scheduler::dynamic(DynamicPolicy { max_batch_size: ROUND as u32, priorities, ..DynamicPolicy::default() })
}

fn with_limits() -> Scheduler<Request> {
    let default_timeout = Duration::from_secs(10_000);
    let default_policy = QueuePolicy { default_timeout, allow_timeout_override: true, ..QueuePolicy::default() };
    dynamic(Priorities { levels: 3, default_level: 2, default_policy, policies: Vec::new() })
}

/// One instance is busy, so that requests wait; as many come as it takes when it is done.
fn requests(criterion: &mut Criterion, name: &str, make: impl Fn() -> Scheduler<Request>) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(ROUND));
    for count in COUNTS {
        let now = Instant::now();
        let mut queue = ModelQueue::new(make(), 1);
        let mut number = 0;
        let mut submit = |queue: &mut ModelQueue<Request>, count| {
            for _ in 0..count {
                number += 1;
                let effect = queue.submit(now, Request::new(number));
                let _ = black_box(effect.expect("there is no limit on their number"));
                black_box(queue.aftermath(now));
            }
        };
        submit(&mut queue, count);
        let mut batch = Vec::new();
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| {
                submit(&mut queue, ROUND);
                while batch.len() < ROUND as usize {
                    let (next, effect) = queue.next(now, 0, &mut batch);
                    assert_eq!(next, Next::Take);
                    let _ = black_box((effect, queue.aftermath(now)));
                }
                batch.clear();
            });
        });
    }
    group.finish();
}

/// Sequences live by turns: eight of them have a request each, further ones the next time.
fn sequences(criterion: &mut Criterion, name: &str, strategy: impl Fn(u32) -> Strategy) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(ROUND));
    for count in COUNTS {
        let now = Instant::now();
        let policy = SequencePolicy {
            strategy: strategy(count as u32),
            max_idle: Duration::from_secs(60),
            hold: StartThreshold::default(),
        };
        let mut queue = SequenceQueue::new(policy, 1);
        let mut batch = Vec::new();
        let mut round = |queue: &mut SequenceQueue<Request>, numbers: &mut dyn Iterator<Item = u64>, is_start| {
            for number in numbers {
                let request = Request { is_start, ..Request::new(number) };
                let effect = queue.submit(now, request);
                let _ = black_box(effect.expect("it starts, or goes on"));
                black_box(queue.aftermath(now));
            }
            while queue.waiting() > 0 {
                let _ = black_box(queue.next(now, 0, &mut batch));
                black_box(queue.aftermath(now));
                batch.clear();
            }
        };
        round(&mut queue, &mut (0..count), true);
        let mut turn = 0;
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| {
                let numbers = turn..turn + ROUND;
                turn += ROUND;
                round(&mut queue, &mut numbers.map(|number| number % count), false);
            });
        });
    }
    group.finish();
}

fn direct(slots: u32) -> Strategy {
    Strategy::Direct { slots, max_queue_delay: Duration::ZERO, minimum_slot_utilization: 0.0 }
}

fn oldest(max_candidate_sequences: u32) -> Strategy {
    let batching = DynamicPolicy { max_batch_size: ROUND as u32, ..DynamicPolicy::default() };
    Strategy::Oldest { max_candidate_sequences, batching }
}

fn benches(criterion: &mut Criterion) {
    requests(criterion, "no batching", Scheduler::direct);
    requests(criterion, "batches", || dynamic(Priorities::default()));
    requests(criterion, "batches, priorities and time-outs", with_limits);
    sequences(criterion, "sequences, direct", direct);
    sequences(criterion, "sequences, oldest", oldest);
}

criterion_group!(queue, benches);
criterion_main!(queue);
