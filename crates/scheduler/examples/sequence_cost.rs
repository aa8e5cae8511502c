//! What a request of a sequence costs the queue, by the number of sequences that live: `cargo run --release -p
//! alipes-scheduler --example sequence_cost`.
//!
//! All sequences live throughout, and each pass sends a request to sixteen of them, as a server does that hears from
//! few of many at a time.

#![allow(clippy::disallowed_methods, reason = "figures are taken on the clock of the system")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use alipes_scheduler::sequence::{SequencePolicy, SequenceQueue, StartThreshold, Strategy};
use alipes_scheduler::{DynamicPolicy, Effect, Membership, Next, Queue, SequenceId, SlotId, Work};

const ACTIVE: u64 = 16;
const PASSES: u64 = 50_000;

#[derive(Debug)]
struct Request {
    sequence: u64,
    start: bool,
    slot_id: SlotId,
}

impl Work for Request {
    fn rows(&self) -> u32 {
        1
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn set_deadline(&mut self, _: Option<Instant>) {
        unreachable!("no policy here has a time-out");
    }

    fn sequence_id(&self) -> Option<SequenceId> {
        Some(SequenceId::Number(self.sequence))
    }

    fn membership(&self) -> Membership {
        Membership { start: self.start, end: false }
    }

    fn assign_slot(&mut self, slot_id: SlotId) {
        self.slot_id = slot_id;
    }

    fn slot_id(&self) -> SlotId {
        self.slot_id
    }
}

/// Sends a request to each of these sequences and runs them all.
fn pass(queue: &mut SequenceQueue<Request>, now: Instant, start: bool, sequences: impl Iterator<Item = u64>) {
    let mut claimed = false;
    for sequence in sequences {
        let request = Request { sequence, start, slot_id: SlotId::default() };
        claimed |= queue.submit(now, request).expect("it goes on") == Effect::Start(0);
    }
    let mut batch = Vec::new();
    while claimed {
        batch.clear();
        claimed = queue.next(now, 0, &mut batch).0 == Next::Take;
        black_box(&batch);
    }
}

fn cost(live: u64) -> Duration {
    let batching = DynamicPolicy { max_batch_size: ACTIVE as u32, ..DynamicPolicy::default() };
    let strategy = Strategy::Oldest { max_candidate_sequences: live as u32, batching };
    let policy = SequencePolicy { strategy, max_idle: Duration::from_secs(3600), hold: StartThreshold::default() };
    let mut queue = SequenceQueue::new(policy, 1);
    let now = Instant::now();
    pass(&mut queue, now, true, 1..=live);
    let began = Instant::now();
    for number in 0..PASSES {
        pass(&mut queue, now, false, (0..ACTIVE).map(|one| 1 + (number * ACTIVE + one) % live));
    }
    began.elapsed() / (PASSES * ACTIVE) as u32
}

fn main() {
    for live in [16, 100, 1_000, 10_000] {
        println!("{live:>6} live sequences: {:>5} ns a request", cost(live).as_nanos());
    }
}
