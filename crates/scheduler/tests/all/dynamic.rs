//! The rules of dynamic batching, one test each, on a clock that the test moves.

use std::time::{Duration, Instant};

use crate::common::{Request, ids, ms, policy, request, zero};
use alipes_scheduler::{DynamicPolicy, Next, Reason, Scheduler};

/// A scheduler in which requests of these sizes arrived at `start`, numbered from zero.
fn with_rows(policy: DynamicPolicy, start: Instant, rows: &[u32]) -> Scheduler<Request> {
    let mut scheduler = Scheduler::dynamic(policy);
    for (id, &rows) in rows.iter().enumerate() {
        scheduler.enqueue(start, request(id, rows)).expect("it was not stopped");
    }
    scheduler
}

fn next(scheduler: &mut Scheduler<Request>, now: Instant) -> (Next, Vec<usize>) {
    let mut batch = Vec::new();
    let next = scheduler.next(now, &mut batch);
    (next, ids(&batch))
}

#[test]
fn nothing_waiting_is_idle() {
    let mut scheduler = with_rows(policy(8, &[], ms(1)), zero(), &[]);
    assert_eq!(next(&mut scheduler, zero()), (Next::Idle, vec![]));
}

#[test]
fn without_a_delay_whatever_waits_goes() {
    let start = zero();
    let mut scheduler = with_rows(policy(8, &[], ms(0)), start, &[1, 2, 3]);
    assert_eq!(next(&mut scheduler, start), (Next::Take, vec![0, 1, 2]));
}

#[test]
fn a_batch_never_exceeds_the_largest_size_and_the_rest_waits() {
    let start = zero();
    let mut scheduler = with_rows(policy(8, &[], ms(0)), start, &[3, 3, 3]);
    assert_eq!(next(&mut scheduler, start), (Next::Take, vec![0, 1]));
    assert_eq!(next(&mut scheduler, start), (Next::Take, vec![2]));
}

#[test]
fn a_request_that_does_not_fit_sends_the_batch_before_its_delay() {
    let start = zero();
    let mut scheduler = with_rows(policy(8, &[8], ms(10)), start, &[5, 4]);
    assert_eq!(next(&mut scheduler, start), (Next::Take, vec![0]));
    assert_eq!(next(&mut scheduler, start), (Next::WaitUntil(start + ms(10)), vec![]));
}

#[test]
fn a_request_with_another_key_sends_the_batch_and_is_never_overtaken() {
    let start = zero();
    let mut scheduler = Scheduler::dynamic(policy(8, &[8], ms(10)));
    for (id, key) in [1, 1, 2, 1].into_iter().enumerate() {
        scheduler.enqueue(start, Request { id, rows: 1, key }).expect("it was not stopped");
    }
    assert_eq!(next(&mut scheduler, start), (Next::Take, vec![0, 1]));
    assert_eq!(next(&mut scheduler, start), (Next::Take, vec![2]));
    assert_eq!(next(&mut scheduler, start), (Next::WaitUntil(start + ms(10)), vec![]));
}

#[test]
fn the_delay_counts_from_the_oldest_request() {
    let start = zero();
    let mut scheduler = with_rows(policy(8, &[], ms(10)), start, &[1]);
    scheduler.enqueue(start + ms(7), request(1, 1)).expect("it was not stopped");
    assert_eq!(next(&mut scheduler, start + ms(7)), (Next::WaitUntil(start + ms(10)), vec![]));
    assert_eq!(next(&mut scheduler, start + ms(10)), (Next::Take, vec![0, 1]));
}

#[test]
fn a_preferred_size_goes_at_once_and_leaves_what_came_behind_it() {
    let start = zero();
    let mut scheduler = with_rows(policy(8, &[4], ms(10)), start, &[2, 2, 1]);
    assert_eq!(next(&mut scheduler, start), (Next::Take, vec![0, 1]));
    assert_eq!(next(&mut scheduler, start), (Next::WaitUntil(start + ms(10)), vec![]));
}

#[test]
fn the_largest_preferred_size_within_reach_wins() {
    let start = zero();
    let mut scheduler = with_rows(policy(16, &[2, 4, 8], ms(10)), start, &[1, 1, 1, 1, 1, 1]);
    assert_eq!(next(&mut scheduler, start), (Next::Take, vec![0, 1, 2, 3]));
}

#[test]
fn a_request_beyond_the_preferred_size_sends_the_earlier_ones() {
    let start = zero();
    let mut scheduler = with_rows(policy(16, &[4], ms(10)), start, &[3, 2]);
    assert_eq!(next(&mut scheduler, start), (Next::Take, vec![0]));
}

#[test]
fn after_the_delay_a_batch_may_exceed_the_preferred_size() {
    let start = zero();
    let mut scheduler = with_rows(policy(8, &[4], ms(10)), start, &[2, 2, 1, 2, 4]);
    assert_eq!(next(&mut scheduler, start + ms(10)), (Next::Take, vec![0, 1, 2, 3]));
}

#[test]
fn without_a_delay_a_preferred_size_is_still_preferred() {
    let start = zero();
    let mut scheduler = with_rows(policy(8, &[4], ms(0)), start, &[2, 2, 1]);
    assert_eq!(next(&mut scheduler, start), (Next::Take, vec![0, 1]));
    assert_eq!(next(&mut scheduler, start), (Next::Take, vec![2]));
}

#[test]
fn no_preferred_size_stands_for_the_largest_batch() {
    let start = zero();
    let mut scheduler = with_rows(policy(4, &[], ms(10)), start, &[2, 1]);
    assert_eq!(next(&mut scheduler, start), (Next::WaitUntil(start + ms(10)), vec![]));
    scheduler.enqueue(start, request(2, 1)).expect("it was not stopped");
    assert_eq!(next(&mut scheduler, start), (Next::Take, vec![0, 1, 2]));
}

#[test]
fn a_request_larger_than_any_batch_runs_alone() {
    let start = zero();
    let mut scheduler = with_rows(policy(4, &[], ms(10)), start, &[9, 1]);
    assert_eq!(next(&mut scheduler, start), (Next::Take, vec![0]));
}

#[test]
fn a_model_without_a_batch_dimension_runs_each_request_alone_and_at_once() {
    let start = zero();
    let mut scheduler = with_rows(policy(0, &[], ms(10)), start, &[1, 1]);
    assert_eq!(next(&mut scheduler, start), (Next::Take, vec![0]));
    assert_eq!(next(&mut scheduler, start), (Next::Take, vec![1]));
}

#[test]
fn removed_requests_come_back_and_the_rest_keeps_order_and_age() {
    let start = zero();
    let mut scheduler = with_rows(policy(8, &[8], ms(10)), start, &[1, 2, 3]);
    let mut removed = Vec::new();
    scheduler.remove_where(|request| request.id == 1, &mut removed);
    assert_eq!((ids(&removed), scheduler.waiting()), (vec![1], 2));
    assert_eq!(next(&mut scheduler, start + ms(9)), (Next::WaitUntil(start + ms(10)), vec![]));
    assert_eq!(next(&mut scheduler, start + ms(10)), (Next::Take, vec![0, 2]));
}

#[test]
fn removing_can_make_the_rest_a_preferred_size() {
    let start = zero();
    let mut scheduler = with_rows(policy(8, &[4, 8], ms(10)), start, &[1, 2, 2]);
    assert_eq!(next(&mut scheduler, start), (Next::WaitUntil(start + ms(10)), vec![]));
    scheduler.remove_where(|request| request.id == 0, &mut Vec::new());
    assert_eq!(next(&mut scheduler, start), (Next::Take, vec![1, 2]));
}

#[test]
fn a_stopped_scheduler_refuses_and_sends_the_rest_at_once() {
    let start = zero();
    let mut scheduler = with_rows(policy(8, &[8], ms(10)), start, &[1, 2]);
    scheduler.stop();
    let refused = scheduler.enqueue(start, request(2, 1)).expect_err("it was stopped");
    assert_eq!((refused.work.id, refused.reason), (2, Reason::Stopping));
    assert_eq!(next(&mut scheduler, start), (Next::Take, vec![0, 1]));
    assert_eq!(next(&mut scheduler, start), (Next::Idle, vec![]));
}

#[test]
fn draining_gives_everything_back_oldest_first() {
    let mut scheduler = with_rows(policy(2, &[], ms(10)), zero(), &[1, 2, 1]);
    let mut removed = Vec::new();
    scheduler.drain_all(&mut removed);
    assert_eq!((ids(&removed), scheduler.waiting()), (vec![0, 1, 2], 0));
}

#[test]
fn an_absurd_delay_or_size_waits_without_overflow() {
    let start = zero();
    let mut scheduler = with_rows(policy(u32::MAX, &[], Duration::MAX), start, &[u32::MAX - 1]);
    assert!(matches!(next(&mut scheduler, start), (Next::WaitUntil(until), _) if until > start));
    scheduler.enqueue(start, request(1, 2)).expect("it was not stopped");
    assert_eq!(next(&mut scheduler, start), (Next::Take, vec![0]));
}

#[test]
fn a_warm_queue_reuses_the_memory_of_the_batch() {
    let start = zero();
    let mut scheduler = with_rows(policy(4, &[], ms(0)), start, &[]);
    let mut batch = Vec::with_capacity(4);
    let before = (batch.as_ptr(), batch.capacity());
    for round in 0..100 {
        (0..4).for_each(|id| scheduler.enqueue(start, request(round * 4 + id, 1)).expect("it was not stopped"));
        batch.clear();
        assert_eq!(scheduler.next(start, &mut batch), Next::Take);
        assert_eq!((batch.as_ptr(), batch.capacity()), before);
    }
}
