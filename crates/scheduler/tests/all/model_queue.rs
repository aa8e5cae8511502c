//! Who comes for a request: claims, the timed waiter, and the effects that must not get lost.

use std::time::{Duration, Instant};

use crate::common::stage::{ExecutedBatch, Place, Stage};
use crate::common::{caller, ms, policy, request, zero};
use alipes_scheduler::{DynamicPolicy, Effect, ModelQueue, Next, Priorities, Queue, QueuePolicy, Reason, Scheduler};

#[test]
fn a_request_claims_an_idle_instance_and_a_busy_one_comes_by_itself() {
    let mut queue = ModelQueue::new(Scheduler::direct(), 1);
    let now = zero();
    assert_eq!(queue.submit(now, request(0, 1)).expect("taken in"), Effect::Start(0));
    assert_eq!(queue.submit(now, request(1, 1)).expect("taken in"), Effect::None);
    for _ in 0..2 {
        assert_eq!(queue.next(now, 0, &mut Vec::new()), (Next::Take, Effect::None));
    }
    assert_eq!(queue.next(now, 0, &mut Vec::new()), (Next::Idle, Effect::None));
    assert_eq!(queue.submit(now, request(2, 1)).expect("taken in"), Effect::Start(0));
}

#[test]
fn only_one_of_two_idle_instances_waits_for_the_delay() {
    let mut stage = Stage::new(Some(policy(4, &[4], ms(10))), 2, ms(1));
    stage.submit(request(0, 1));
    stage.submit(request(1, 1));
    assert_eq!(stage.places, [Place::Coming, Place::Coming]);
    stage.settle();
    assert_eq!(stage.places, [Place::Sleeping(stage.now + ms(10)), Place::Idle]);
}

#[test]
fn the_request_that_completes_a_batch_wakes_the_waiter() {
    let mut stage = Stage::new(Some(policy(4, &[4], ms(10))), 2, ms(1));
    stage.submit(request(0, 2));
    stage.settle();
    stage.submit(request(1, 1));
    assert_eq!(stage.places[0], Place::Sleeping(stage.now + ms(10)));
    stage.submit(request(2, 1));
    assert_eq!(stage.places, [Place::Coming, Place::Idle]);
    stage.settle();
    assert_eq!(stage.executed, [ExecutedBatch { at: ms(0), instance: 0, ids: vec![0, 1, 2] }]);
}

#[test]
fn a_waiter_that_leaves_requests_behind_passes_the_watch_on() {
    let mut stage = Stage::new(Some(policy(4, &[4], ms(10))), 2, ms(100));
    stage.submit(request(0, 3));
    stage.settle();
    stage.submit(request(1, 2));
    stage.settle();
    assert_eq!(stage.places, [Place::RunningUntil(stage.now + ms(100)), Place::Sleeping(stage.now + ms(10))]);
    stage.run_out();
    assert_eq!(stage.executed[1], ExecutedBatch { at: ms(10), instance: 1, ids: vec![1] });
}

#[test]
fn a_woken_waiter_is_not_counted_on_twice() {
    let mut stage = Stage::new(Some(policy(4, &[4], ms(10))), 2, ms(1));
    stage.submit(request(0, 3));
    stage.settle();
    stage.submit(request(1, 1));
    stage.submit(request(2, 4));
    assert_eq!(stage.places, [Place::Coming, Place::Coming]);
    stage.settle();
    assert_eq!(stage.executed.iter().map(|executed| executed.instance).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn cancellation_makes_the_rest_due_or_frees_the_instance() {
    let mut stage = Stage::new(Some(policy(8, &[4, 8], ms(10))), 1, ms(1));
    [1, 2, 2].into_iter().enumerate().for_each(|(id, rows)| stage.submit(request(id, rows)));
    stage.settle();
    assert_eq!(stage.cancel(0), [request(0, 1)]);
    stage.settle();
    assert_eq!(stage.executed[0].ids, [1, 2]);

    stage.run_until(ms(1));
    stage.submit(request(3, 1));
    stage.settle();
    stage.cancel(3);
    stage.settle();
    assert!(stage.queue.is_quiet());
}

#[test]
fn stopping_lets_the_waiting_go_at_once_and_then_it_is_quiet() {
    let mut stage = Stage::new(Some(policy(4, &[4], ms(10))), 2, ms(1));
    stage.submit(request(0, 1));
    stage.settle();
    stage.stop();
    let refused = stage.queue.submit(stage.now, request(1, 1)).expect_err("it was stopped");
    assert_eq!(refused.reason, Reason::Stopping);
    assert!(!stage.queue.is_quiet());
    assert_eq!(stage.run_out(), ms(1));
    assert_eq!(stage.executed[0].ids, [0]);
    assert!(stage.queue.is_quiet());
}

#[test]
fn a_released_instance_is_replaced_while_requests_wait() {
    let mut stage = Stage::new(None, 1, ms(5));
    stage.submit(request(0, 1));
    stage.settle();
    stage.submit(request(1, 1));
    stage.now += ms(5);
    stage.finish(0);
    assert_eq!(stage.places, [Place::Coming]);
    stage.settle();
    stage.now += ms(5);
    stage.finish(0);
    assert_eq!((stage.places[0], stage.executed.len(), stage.queue.waiting()), (Place::Idle, 2, 0));
}

/// How long one instance or two need for the requests A to E of 4, 2, 2, 6 and 2 rows, each batch taking 60 ms. A and C
/// arrive at 0, B at 20, D and E at 40. Source: the sample scenario of Triton's tutorial on concurrent model execution.
fn five_requests(delay: Option<Duration>, instances: usize) -> (Duration, Vec<Vec<usize>>) {
    let dynamic = delay.map(|delay| policy(8, &[8], delay));
    let mut stage = Stage::new(dynamic, instances, ms(60));
    let [a, b, c, d, e] = [4, 2, 2, 6, 2].map(|rows| move |id| request(id, rows));
    stage.submit(a(0));
    stage.submit(c(2));
    stage.run_until(ms(20));
    stage.submit(b(1));
    stage.run_until(ms(40));
    stage.submit(d(3));
    stage.submit(e(4));
    let end = stage.run_out();
    (end, stage.executed.into_iter().map(|executed| executed.ids).collect())
}

#[test]
fn five_requests_take_five_turns_one_by_one() {
    assert_eq!(five_requests(None, 1), (ms(300), vec![vec![0], vec![2], vec![1], vec![3], vec![4]]));
}

#[test]
fn five_requests_take_three_turns_batched() {
    assert_eq!(five_requests(Some(ms(0)), 1), (ms(180), vec![vec![0, 2], vec![1, 3], vec![4]]));
}

#[test]
fn five_requests_take_two_full_turns_when_the_first_waits_for_company() {
    assert_eq!(five_requests(Some(ms(30)), 1), (ms(140), vec![vec![0, 2, 1], vec![3, 4]]));
}

#[test]
fn five_requests_on_two_instances_overlap_and_full_batches_never_wait() {
    assert_eq!(five_requests(None, 2).0, ms(180));
    assert_eq!(five_requests(Some(ms(30)), 2), (ms(100), vec![vec![0, 2, 1], vec![3, 4]]));
}

#[test]
fn requests_put_back_go_first_to_another_instance() {
    let (now, mut batch) = (zero(), Vec::new());
    let mut queue = ModelQueue::new(Scheduler::direct(), 2);
    for id in 0..4 {
        let _ = queue.submit(now, request(id, 1)).expect("taken in");
    }
    assert_eq!(queue.next(now, 0, &mut batch).0, Next::Take);
    assert_eq!(queue.next(now, 0, &mut batch).0, Next::Take);
    assert_eq!(queue.put_back(now, &mut batch.drain(..)), Effect::None, "instance 1 is on its way");
    while queue.next(now, 1, &mut batch).0 == Next::Take {}
    assert_eq!(batch.iter().map(|request| request.id).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(queue.put_back(now, &mut batch.drain(..)), Effect::Start(1), "instance 0 is still claimed");
}

#[test]
fn what_is_put_back_waits_for_no_further_company() {
    let (now, mut batch) = (zero() + ms(50), Vec::new());
    let mut queue = ModelQueue::new(Scheduler::dynamic(policy(4, &[4], ms(10))), 1);
    let _ = queue.put_back(now, &mut [request(0, 1)].into_iter());
    assert_eq!(queue.next(now, 0, &mut batch).0, Next::Take);
}

#[test]
fn a_new_instance_comes_for_what_waits() {
    let mut queue = ModelQueue::new(Scheduler::direct(), 1);
    let now = zero();
    assert_eq!(queue.submit(now, request(0, 1)).expect("taken in"), Effect::Start(0));
    assert_eq!(queue.next(now, 0, &mut Vec::new()), (Next::Take, Effect::None));
    assert_eq!(queue.submit(now, request(1, 1)).expect("taken in"), Effect::None);
    assert!(queue.is_free(1) && !queue.is_free(0));
    assert_eq!(queue.rearrange(now, &[0, 1]), Effect::Start(1));
}

#[test]
fn an_instance_out_of_service_gets_no_more_and_leaves_the_rest_to_others() {
    let mut queue = ModelQueue::new(Scheduler::direct(), 2);
    let now = zero();
    assert_eq!(queue.submit(now, request(0, 1)).expect("taken in"), Effect::Start(0));
    assert_eq!(queue.next(now, 0, &mut Vec::new()), (Next::Take, Effect::None));
    assert_eq!(queue.rearrange(now, &[1]), Effect::None);
    assert_eq!(queue.submit(now, request(1, 1)).expect("taken in"), Effect::Start(1));
    assert_eq!(queue.next(now, 0, &mut Vec::new()).0, Next::Idle);
    assert!(queue.is_free(0));
    assert_eq!(queue.next(now, 1, &mut Vec::new()), (Next::Take, Effect::None));
}

#[test]
fn a_waiter_out_of_service_is_woken_and_another_one_waits_in_its_place() {
    let mut stage = Stage::new(Some(policy(4, &[4], ms(10))), 2, ms(1));
    stage.submit(request(0, 1));
    stage.settle();
    assert_eq!(stage.places[0], Place::Sleeping(stage.now + ms(10)));
    stage.rearrange(|instance| instance == 1, 0);
    assert_eq!(stage.places[0], Place::Coming);
    stage.settle();
    assert_eq!(stage.places, [Place::Idle, Place::Sleeping(stage.now + ms(10))]);
}

/// A queue whose requests wait at most 10 ms for its only instance, which is busy.
fn busy_and_impatient() -> (ModelQueue<caller::Request>, Instant) {
    let limit = QueuePolicy { default_timeout: ms(10), ..QueuePolicy::default() };
    let priorities = Priorities { default_policy: limit, ..Priorities::default() };
    let now = zero();
    let scheduler = Scheduler::dynamic(DynamicPolicy { priorities, ..policy(1, &[1], ms(0)) });
    let mut queue = ModelQueue::new(scheduler, 1);
    assert_eq!(queue.submit(now, caller::request(0)).expect("taken in"), Effect::Start(0));
    assert_eq!(queue.next(now, 0, &mut Vec::new()), (Next::Take, Effect::None));
    (queue, now)
}

fn alarm(queue: &mut ModelQueue<caller::Request>) -> Option<Instant> {
    queue.aftermath(zero()).and_then(|aftermath| aftermath.alarm)
}

#[test]
fn an_alarm_is_set_once_and_again_only_for_sooner() {
    let (mut queue, now) = busy_and_impatient();
    assert_eq!(alarm(&mut queue), None, "what was taken in and out again needs none");
    queue.submit(now, caller::request(1)).map(drop).expect("taken in");
    assert_eq!(alarm(&mut queue), Some(now + ms(10)));
    queue.submit(now + ms(1), caller::request(2)).map(drop).expect("taken in");
    assert!(queue.aftermath(now).is_none());
}

#[test]
fn requests_expire_in_time_while_the_instance_is_busy() {
    let (mut queue, now) = busy_and_impatient();
    queue.submit(now, caller::request(1)).map(drop).expect("taken in");
    queue.submit(now + ms(4), caller::request(2)).map(drop).expect("taken in");
    assert_eq!(alarm(&mut queue), Some(now + ms(10)));
    assert_eq!(queue.expire(now + ms(10)), Effect::None);
    let aftermath = queue.aftermath(now).expect("one is given back");
    let refused: Vec<(usize, Reason)> = aftermath.refused.iter().map(|one| (one.work.id, one.reason)).collect();
    assert_eq!((refused, aftermath.alarm), (vec![(1, Reason::Expired)], Some(now + ms(14))));
}

#[test]
fn an_alarm_for_nothing_does_no_harm() {
    let (mut queue, now) = busy_and_impatient();
    queue.submit(now, caller::request(1)).map(drop).expect("taken in");
    assert_eq!(alarm(&mut queue), Some(now + ms(10)));
    assert_eq!(queue.next(now, 0, &mut Vec::new()).0, Next::Take);
    assert_eq!(queue.expire(now + ms(10)), Effect::None);
    assert!(queue.aftermath(now).is_none());
    queue.submit(now + ms(10), caller::request(2)).map(drop).expect("taken in");
    assert_eq!(alarm(&mut queue), Some(now + ms(20)));
}

#[test]
fn expiry_wakes_the_instance_that_sleeps_for_a_batch() {
    let limit = QueuePolicy { default_timeout: ms(5), ..QueuePolicy::default() };
    let priorities = Priorities { default_policy: limit, ..Priorities::default() };
    let now = zero();
    let scheduler = Scheduler::dynamic(DynamicPolicy { priorities, ..policy(4, &[4], ms(10)) });
    let mut queue = ModelQueue::new(scheduler, 1);
    assert_eq!(queue.submit(now, caller::request(0)).expect("taken in"), Effect::Start(0));
    assert_eq!(queue.next(now, 0, &mut Vec::new()), (Next::WaitUntil(now + ms(10)), Effect::None));
    assert_eq!(alarm(&mut queue), Some(now + ms(5)));
    assert_eq!(queue.expire(now + ms(5)), Effect::Wake(0));
    assert_eq!(queue.next(now + ms(5), 0, &mut Vec::new()), (Next::Idle, Effect::None));
    assert_eq!(queue.aftermath(now).map(|aftermath| aftermath.refused.len()), Some(1));
    assert!(queue.is_quiet());
}
