//! A queue that forms its batches in another way from some moment on.

use std::time::{Duration, Instant};

use crate::common::{Request, ids, ms, policy, request, zero};
use alipes_scheduler::{Batching, Effect, ModelQueue, Next, Queue, Scheduler};

fn batching(delay: Duration, batch: u32) -> Batching {
    Batching { max_queue_delay: delay, batch }
}

fn queue(delay: u64) -> ModelQueue<Request> {
    ModelQueue::new(Scheduler::dynamic(policy(8, &[], ms(delay))), 1)
}

fn submit(queue: &mut ModelQueue<Request>, now: Instant, requests: usize, rows: u32) {
    for id in 0..requests {
        let _ = queue.submit(now, request(id, rows)).expect("taken in");
    }
}

#[test]
fn a_shorter_delay_wakes_the_waiter_and_counts_from_the_arrival() {
    let (start, mut queue, mut batch) = (zero(), queue(10), Vec::new());
    assert_eq!(queue.submit(start, request(0, 1)).expect("taken in"), Effect::Start(0));
    assert_eq!(queue.next(start, 0, &mut batch).0, Next::WaitUntil(start + ms(10)));
    assert_eq!(queue.set_batching(start + ms(1), batching(ms(3), 8)), Effect::Wake(0));
    assert_eq!(queue.next(start + ms(1), 0, &mut batch).0, Next::WaitUntil(start + ms(3)));
    assert_eq!(queue.set_batching(start + ms(2), batching(ms(0), 8)), Effect::Wake(0));
    assert_eq!(queue.next(start + ms(2), 0, &mut batch).0, Next::Take);
    assert_eq!(ids(&batch), [0]);
}

#[test]
fn under_a_longer_delay_the_waiter_waits_on() {
    let (start, mut queue, mut batch) = (zero(), queue(10), Vec::new());
    let _ = queue.submit(start, request(0, 1)).expect("taken in");
    assert_eq!(queue.next(start, 0, &mut batch).0, Next::WaitUntil(start + ms(10)));
    assert_eq!(queue.set_batching(start + ms(1), batching(ms(20), 8)), Effect::None);
    assert_eq!(queue.next(start + ms(10), 0, &mut batch).0, Next::WaitUntil(start + ms(20)));
    assert_eq!(queue.next(start + ms(20), 0, &mut batch).0, Next::Take);
}

#[test]
fn a_smaller_batch_is_no_longer_waited_for_and_not_exceeded() {
    let (start, mut queue, mut batch) = (zero(), queue(10), Vec::new());
    submit(&mut queue, start, 5, 1);
    assert_eq!(queue.next(start, 0, &mut batch).0, Next::WaitUntil(start + ms(10)));
    assert_eq!(queue.set_batching(start, batching(ms(10), 2)), Effect::Wake(0));
    for expected in [[0, 1], [2, 3]] {
        batch.clear();
        assert_eq!((queue.next(start, 0, &mut batch).0, ids(&batch)), (Next::Take, expected.to_vec()));
    }
    assert_eq!(queue.next(start, 0, &mut batch).0, Next::WaitUntil(start + ms(10)));
}

#[test]
fn no_batch_becomes_larger_than_the_model_takes() {
    let (start, mut queue, mut batch) = (zero(), queue(0), Vec::new());
    let _ = queue.set_batching(start, batching(ms(0), 100));
    submit(&mut queue, start, 9, 1);
    assert_eq!(queue.next(start, 0, &mut batch).0, Next::Take);
    assert_eq!(batch.len(), 8);
}

#[test]
fn a_request_with_more_rows_than_a_batch_runs_alone() {
    let (start, mut queue, mut batch) = (zero(), queue(0), Vec::new());
    let _ = queue.set_batching(start, batching(ms(0), 2));
    submit(&mut queue, start, 2, 5);
    assert_eq!(queue.next(start, 0, &mut batch).0, Next::Take);
    assert_eq!(ids(&batch), [0]);
}

#[test]
fn requests_that_run_alone_go_on_to_do_so() {
    let (start, mut batch) = (zero(), Vec::new());
    let mut queue = ModelQueue::new(Scheduler::direct(), 1);
    assert_eq!(queue.set_batching(start, batching(ms(10), 4)), Effect::None);
    submit(&mut queue, start, 2, 1);
    assert_eq!((queue.next(start, 0, &mut batch).0, ids(&batch)), (Next::Take, vec![0]));
}
