//! Models that share one thread: whatever waits for one of them, each of the others has a batch in between.
//!
//! The thread is driven as a network thread of the server is: it takes one batch of an instance, gives the instance
//! back, and puts whatever was started behind those that wait for the thread already.

use std::collections::VecDeque;

use crate::common::{Request, ms, policy, request, zero};
use alipes_scheduler::{Effect, ModelQueue, Next, Queue, Scheduler};
use proptest::collection::vec;
use proptest::prelude::*;

struct Thread {
    models: Vec<ModelQueue<Request>>,
    line: VecDeque<(usize, usize)>,
    /// The models whose batches ran, in order.
    ran: Vec<usize>,
}

impl Thread {
    fn new(models: usize) -> Thread {
        let queue = || ModelQueue::new(Scheduler::dynamic(policy(4, &[4], ms(0))), 1);
        Thread { models: (0..models).map(|_| queue()).collect(), line: VecDeque::new(), ran: Vec::new() }
    }

    fn submit(&mut self, model: usize, count: usize) {
        for id in 0..count {
            let effect = self.models[model].submit(zero(), request(id, 1)).expect("there is no limit");
            self.carry_out(model, effect);
        }
    }

    fn carry_out(&mut self, model: usize, effect: Effect) {
        if let Effect::Start(instance) = effect {
            self.line.push_back((model, instance));
        }
    }

    fn turn(&mut self) {
        let Some((model, instance)) = self.line.pop_front() else { return };
        let (next, effect) = self.models[model].next(zero(), instance, &mut Vec::new());
        self.carry_out(model, effect);
        if next == Next::Take {
            self.ran.push(model);
            let effect = self.models[model].finish(zero(), instance);
            self.carry_out(model, effect);
        }
    }
}

#[test]
fn a_flooded_model_runs_one_batch_before_a_request_of_another() {
    let mut thread = Thread::new(2);
    thread.submit(0, 1000);
    for round in 0..100 {
        thread.turn();
        thread.submit(1, 1);
        thread.submit(0, 10);
        thread.turn();
        thread.turn();
        assert_eq!(thread.ran[3 * round..], [0, 0, 1][..], "round {round}");
    }
}

proptest! {
    #[test]
    fn models_with_requests_take_turns(floods in vec(1usize..40, 1..6), turns in 1usize..60) {
        let mut thread = Thread::new(floods.len());
        floods.iter().enumerate().for_each(|(model, &count)| thread.submit(model, count));
        for _ in 0..turns {
            let has_some: Vec<usize> = (0..floods.len()).filter(|&model| thread.models[model].waiting() > 0).collect();
            let began = thread.ran.len();
            has_some.iter().for_each(|_| thread.turn());
            let mut ran = thread.ran[began..].to_vec();
            ran.sort_unstable();
            prop_assert_eq!(ran, has_some);
        }
    }
}
