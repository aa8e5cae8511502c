//! Who goes first, and how long and how many may wait: one test per rule, on a clock that the test moves.

use std::time::{Duration, Instant};

use crate::common::caller::{Request, levels, request};
use crate::common::{ms, policy, zero};
use alipes_scheduler::{DynamicPolicy, Next, Priorities, QueuePolicy, Reason, Scheduler, TimeoutAction, Why};

fn timeout(action: TimeoutAction, timeout: Duration) -> QueuePolicy {
    QueuePolicy { timeout_action: action, default_timeout: timeout, ..QueuePolicy::default() }
}

fn one_level(default_policy: QueuePolicy) -> Priorities {
    Priorities { default_policy, ..Priorities::default() }
}

/// One request at a time.
fn alone(priorities: Priorities) -> DynamicPolicy {
    DynamicPolicy { priorities, ..policy(1, &[1], ms(0)) }
}

fn with(policy: DynamicPolicy, now: Instant, requests: &[Request]) -> Scheduler<Request> {
    let mut scheduler = Scheduler::dynamic(policy);
    requests.iter().for_each(|request| scheduler.enqueue(now, request.clone()).expect("there is room"));
    scheduler
}

fn next(scheduler: &mut Scheduler<Request>, now: Instant) -> Vec<usize> {
    let mut batch = Vec::new();
    scheduler.next(now, &mut batch);
    batch.iter().map(|request| request.id).collect()
}

/// All that is taken from now on, batch by batch.
fn all(scheduler: &mut Scheduler<Request>, now: Instant) -> Vec<Vec<usize>> {
    std::iter::from_fn(|| Some(next(scheduler, now)).filter(|batch| !batch.is_empty())).collect()
}

fn refused(scheduler: &mut Scheduler<Request>) -> Vec<(usize, Reason)> {
    scheduler.refused().drain(..).map(|refused| (refused.work.id, refused.reason)).collect()
}

#[test]
fn a_higher_priority_goes_first_and_within_a_level_who_came_first() {
    let start = zero();
    let requests = [request(0).priority(3), request(1).priority(1), request(2).priority(2), request(3).priority(1)];
    let mut scheduler = with(alone(levels(3, 2)), start, &requests);
    assert_eq!(all(&mut scheduler, start), [[1], [3], [2], [0]]);
}

#[test]
fn who_names_no_level_or_none_that_there_is_has_the_default_level() {
    let start = zero();
    let requests = [request(0).priority(3), request(1).priority(0), request(2).priority(4), request(3).priority(2)];
    let mut scheduler = with(alone(levels(3, 2)), start, &requests);
    assert_eq!(all(&mut scheduler, start), [[1], [2], [3], [0]]);
}

#[test]
fn without_levels_priorities_mean_nothing() {
    let start = zero();
    let mut scheduler = with(alone(levels(0, 0)), start, &[request(0).priority(9), request(1).priority(1)]);
    assert_eq!(all(&mut scheduler, start), [[0], [1]]);
}

#[test]
fn a_batch_takes_from_the_next_level_what_fits() {
    let start = zero();
    let batching = DynamicPolicy { priorities: levels(2, 2), ..policy(4, &[4], ms(0)) };
    let mut scheduler = with(batching, start, &[request(0).rows(2), request(1).rows(3).priority(1), request(2)]);
    assert_eq!(all(&mut scheduler, start), [vec![1], vec![0, 2]]);
}

#[test]
fn a_batch_takes_nothing_from_below_where_a_whole_batch_waits_there() {
    let start = zero();
    let batching = DynamicPolicy { priorities: levels(2, 2), ..policy(4, &[4], ms(10)) };
    let flood: Vec<Request> = (0..6).map(request).collect();
    let mut scheduler = with(batching, start, &flood);
    let urgent = [request(6).priority(1), request(7).priority(1)];
    urgent.into_iter().for_each(|urgent| scheduler.enqueue(start, urgent).expect("there is room"));
    assert_eq!(scheduler.outlook(start).map(|outlook| (outlook.due, outlook.why)), Some((start, Why::Urgent)));
    assert_eq!(next(&mut scheduler, start), [6, 7]);
    assert_eq!(next(&mut scheduler, start), [0, 1, 2, 3]);
    scheduler.enqueue(start, request(8).priority(1)).expect("there is room");
    assert_eq!(next(&mut scheduler, start + ms(10)), [8, 4, 5], "below it less than a batch waits");
}

#[test]
fn a_request_of_higher_priority_changes_the_next_batch() {
    let start = zero();
    let batching = DynamicPolicy { priorities: levels(2, 2), ..policy(4, &[4], ms(10)) };
    let mut scheduler = with(batching, start, &[request(0).rows(2)]);
    assert_eq!(scheduler.due(start), Some(start + ms(10)));
    scheduler.enqueue(start + ms(1), request(1).rows(3).priority(1)).expect("there is room");
    assert_eq!(next(&mut scheduler, start + ms(1)), [1]);
}

#[test]
fn the_delay_counts_from_the_oldest_request_of_all_levels() {
    let start = zero();
    let batching = DynamicPolicy { priorities: levels(2, 2), ..policy(4, &[4], ms(10)) };
    let mut scheduler = with(batching, start, &[request(0)]);
    scheduler.enqueue(start + ms(5), request(1).priority(1)).expect("there is room");
    assert_eq!(scheduler.due(start + ms(5)), Some(start + ms(10)));
}

#[test]
fn one_more_than_may_wait_is_refused_at_once() {
    let start = zero();
    let short = QueuePolicy { max_queue_size: 2, ..QueuePolicy::default() };
    let mut scheduler = with(alone(one_level(short)), start, &[request(0), request(1)]);
    let refused = scheduler.enqueue(start, request(2)).expect_err("two wait already");
    assert_eq!((refused.work.id, refused.reason), (2, Reason::QueueFull));
    assert_eq!(next(&mut scheduler, start), [0]);
    scheduler.enqueue(start, request(3)).expect("one has left");
}

#[test]
fn each_level_has_room_of_its_own() {
    let start = zero();
    let short = QueuePolicy { max_queue_size: 1, ..QueuePolicy::default() };
    let priorities = Priorities { policies: vec![(1, short)], ..levels(2, 2) };
    let mut scheduler = with(alone(priorities), start, &[request(0), request(1), request(2).priority(1)]);
    assert!(scheduler.enqueue(start, request(3).priority(1)).is_err());
    scheduler.enqueue(start, request(4)).expect("only the first level is short");
}

#[test]
fn an_expired_request_is_refused_and_never_executed() {
    let start = zero();
    let mut scheduler = with(alone(one_level(timeout(TimeoutAction::Reject, ms(10)))), start, &[request(0)]);
    assert_eq!(scheduler.deadline(), Some(start + ms(10)));
    scheduler.expire(start + ms(9));
    assert_eq!(refused(&mut scheduler), []);
    assert_eq!(next(&mut scheduler, start + ms(10)), []);
    assert_eq!((refused(&mut scheduler), scheduler.deadline()), (vec![(0, Reason::Expired)], None));
}

#[test]
fn who_has_waited_too_long_makes_room_before_another_is_refused() {
    let start = zero();
    let short = QueuePolicy { max_queue_size: 1, ..timeout(TimeoutAction::Reject, ms(10)) };
    let mut scheduler = with(alone(one_level(short)), start, &[request(0)]);
    scheduler.enqueue(start + ms(10), request(1)).expect("the first has waited too long");
    assert_eq!(refused(&mut scheduler), [(0, Reason::Expired)]);
}

#[test]
fn a_delayed_request_waits_behind_its_level_and_never_too_long_again() {
    let start = zero();
    let priorities = Priorities { default_policy: timeout(TimeoutAction::Delay, ms(10)), ..levels(2, 1) };
    let mut scheduler = with(alone(priorities), start, &[request(0), request(1)]);
    scheduler.enqueue(start + ms(5), request(2)).expect("there is room");
    scheduler.enqueue(start + ms(5), request(3).priority(2)).expect("there is room");
    assert_eq!(next(&mut scheduler, start + ms(10)), [2]);
    assert_eq!(all(&mut scheduler, start + ms(1000)), [[0], [1], [3]]);
    assert_eq!(refused(&mut scheduler), []);
}

#[test]
fn a_delayed_request_counts_among_those_that_may_wait() {
    let start = zero();
    let short = QueuePolicy { max_queue_size: 1, ..timeout(TimeoutAction::Delay, ms(10)) };
    let mut scheduler = with(alone(one_level(short)), start, &[request(0)]);
    assert_eq!(scheduler.enqueue(start + ms(10), request(1)).expect_err("one waits").reason, Reason::QueueFull);
}

#[test]
fn going_behind_can_make_a_preferred_size() {
    let start = zero();
    let priorities = one_level(timeout(TimeoutAction::Delay, ms(5)));
    let mut scheduler = Scheduler::dynamic(DynamicPolicy { priorities, ..policy(8, &[2, 8], ms(100)) });
    scheduler.enqueue(start, request(0).rows(3)).expect("there is room");
    scheduler.enqueue(start + ms(1), request(1).rows(2)).expect("there is room");
    assert_eq!(scheduler.due(start + ms(1)), Some(start + ms(100)));
    scheduler.expire(start + ms(5));
    assert_eq!(next(&mut scheduler, start + ms(5)), [1]);
}

#[test]
fn a_request_brings_a_shorter_limit_only_where_it_may_and_there_is_one() {
    let start = zero();
    let allowed = |allow_timeout_override, default| {
        let policy = QueuePolicy { allow_timeout_override, ..timeout(TimeoutAction::Reject, default) };
        let scheduler = with(alone(one_level(policy)), start, &[request(0).timeout(ms(5))]);
        scheduler.deadline().map(|deadline| deadline - start)
    };
    assert_eq!(allowed(true, ms(10)), Some(ms(5)));
    assert_eq!(allowed(true, ms(3)), Some(ms(3)));
    assert_eq!(allowed(false, ms(10)), Some(ms(10)));
    assert_eq!(allowed(true, ms(0)), None);
}

#[test]
fn shorter_limits_pass_first_whatever_the_order_of_arrival() {
    let start = zero();
    let policy = QueuePolicy { allow_timeout_override: true, ..timeout(TimeoutAction::Reject, ms(30)) };
    let requests = [request(0), request(1).timeout(ms(20)), request(2).timeout(ms(10))];
    let mut scheduler = with(alone(one_level(policy)), start, &requests);
    for (passed, id) in [(10, 2), (20, 1), (30, 0)] {
        assert_eq!(scheduler.deadline(), Some(start + ms(passed)));
        scheduler.expire(start + ms(passed));
        assert_eq!(refused(&mut scheduler), [(id, Reason::Expired)]);
    }
}

#[test]
fn what_is_put_back_keeps_its_deadline() {
    let start = zero();
    let mut scheduler = with(alone(one_level(timeout(TimeoutAction::Reject, ms(10)))), start, &[request(0)]);
    let mut batch = Vec::new();
    assert_eq!(scheduler.next(start, &mut batch), Next::Take);
    assert_eq!(scheduler.deadline(), None);
    scheduler.put_back(start + ms(5), batch.into_iter());
    assert_eq!(scheduler.deadline(), Some(start + ms(10)));
}

#[test]
fn what_is_put_back_stands_at_the_head_of_its_own_level() {
    let start = zero();
    let mut scheduler = with(alone(levels(2, 2)), start, &[request(0), request(1)]);
    let mut batch = Vec::new();
    scheduler.next(start, &mut batch);
    scheduler.enqueue(start, request(2).priority(1)).expect("there is room");
    scheduler.put_back(start, batch.into_iter());
    assert_eq!(all(&mut scheduler, start), [[2], [0], [1]]);
}

#[test]
fn a_cancelled_request_is_refused_at_once_where_few_wait() {
    let start = zero();
    let requests = [request(0), request(1), request(2)];
    let mut scheduler = with(alone(levels(0, 0)), start, &requests);
    requests[1].leave();
    scheduler.caller_left(start);
    assert_eq!((refused(&mut scheduler), scheduler.waiting()), (vec![(1, Reason::Cancelled)], 2));
}

#[test]
fn whose_caller_has_gone_never_joins_a_batch() {
    let start = zero();
    let requests: Vec<Request> = (0..10).map(request).collect();
    let mut scheduler = with(policy(4, &[4], ms(0)), start, &requests);
    requests[1].leave();
    scheduler.caller_left(start);
    assert_eq!(scheduler.waiting(), 10, "too many wait to look through all of them for one");
    assert_eq!(next(&mut scheduler, start), [0, 2, 3, 4]);
    assert_eq!(refused(&mut scheduler), [(1, Reason::Cancelled)]);
}

#[test]
fn a_cancelled_request_leaves_a_long_queue_in_bounded_time() {
    let start = zero();
    let requests: Vec<Request> = (0..1000).map(request).collect();
    for mut scheduler in [with(alone(levels(0, 0)), start, &requests), Scheduler::direct()] {
        while scheduler.waiting() < 1000 {
            scheduler.enqueue(start, requests[scheduler.waiting()].clone()).expect("there is room");
        }
        [900, 901].iter().for_each(|&id: &usize| {
            requests[id].leave();
            scheduler.caller_left(start + ms(id as u64 - 900));
        });
        assert_eq!((scheduler.waiting(), scheduler.deadline()), (1000, Some(start + ms(1))));
        scheduler.expire(start + ms(1));
        assert_eq!(refused(&mut scheduler), [(900, Reason::Cancelled), (901, Reason::Cancelled)]);
        assert_eq!(scheduler.deadline(), None);
    }
}

#[test]
fn whose_caller_has_gone_stands_in_nobodys_way() {
    let start = zero();
    let short = QueuePolicy { max_queue_size: 10, ..QueuePolicy::default() };
    let requests: Vec<Request> = (0..10).map(request).collect();
    let mut scheduler = with(alone(one_level(short)), start, &requests);
    requests[7].leave();
    scheduler.caller_left(start);
    scheduler.enqueue(start, request(10)).expect("one of ten has gone");
    assert_eq!(refused(&mut scheduler), [(7, Reason::Cancelled)]);
}

#[test]
fn a_held_scheduler_begins_once_so_many_wait_and_never_holds_again() {
    let start = zero();
    let held = DynamicPolicy { held_until: 3, ..policy(8, &[8], ms(0)) };
    let mut scheduler = with(held, start, &[request(0), request(1)]);
    assert_eq!((scheduler.due(start + ms(1000)), next(&mut scheduler, start)), (None, vec![]));
    scheduler.enqueue(start, request(2)).expect("there is room");
    assert_eq!(next(&mut scheduler, start), [0, 1, 2]);
    scheduler.enqueue(start, request(3)).expect("there is room");
    assert_eq!(next(&mut scheduler, start), [3]);
}

#[test]
fn a_held_scheduler_that_stops_lets_the_waiting_go() {
    let start = zero();
    let mut scheduler = with(DynamicPolicy { held_until: 9, ..policy(8, &[8], ms(0)) }, start, &[request(0)]);
    scheduler.stop();
    assert_eq!(next(&mut scheduler, start), [0]);
}

#[test]
fn as_many_levels_as_there_are_numbers_leave_nothing_behind() {
    let start = zero();
    let mut scheduler = Scheduler::dynamic(alone(levels(u64::MAX, 1)));
    for id in 0..10_000 {
        scheduler.enqueue(start, request(id).priority(u64::MAX - id as u64)).expect("there is room");
    }
    assert_eq!(all(&mut scheduler, start).len(), 10_000);
    assert_eq!(scheduler.waiting(), 0);
}

#[test]
fn absurd_time_outs_wait_without_overflow() {
    let start = zero();
    let policy = QueuePolicy { allow_timeout_override: true, ..timeout(TimeoutAction::Reject, Duration::MAX) };
    let scheduler = with(alone(one_level(policy)), start, &[request(0).timeout(Duration::MAX)]);
    assert!(scheduler.deadline().is_some_and(|deadline| deadline > start));
}
