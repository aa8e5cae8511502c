//! What is told of a queue is what it does, and why.

use std::ops::{ControlFlow, Range};
use std::time::Instant;

use crate::common::{Request, ms, policy, request, zero};
use alipes_scheduler::{Decision, Effect, Explanation, Hold, ModelQueue, Next, Outlook, Queue, Scheduler, Why};

fn reasons(explanation: &Explanation) -> Vec<(usize, Why)> {
    let took = |(_, decision): &(_, Decision)| match *decision {
        Decision::Took { requests, why, .. } => Some((requests, why)),
        _ => None,
    };
    explanation.decisions.iter().filter_map(took).collect()
}

/// Lets one instance take what is there at `after` milliseconds, and tells why it did.
fn next_batches(max: u32, preferred: &[u32], delay: u64, requests: &[Request], after: u64) -> Vec<(usize, Why)> {
    let (start, mut batch) = (zero(), Vec::new());
    let mut queue = ModelQueue::new(Scheduler::dynamic(policy(max, preferred, ms(delay))), 1);
    for &request in requests {
        let _ = queue.submit(start, request).expect("taken in");
    }
    while queue.next(start + ms(after), 0, &mut batch).0 == Next::Take {
        batch.clear();
    }
    reasons(&queue.explain(start + ms(after)))
}

fn submit(queue: &mut ModelQueue<Request>, now: Instant, ids: Range<usize>) {
    for id in ids {
        let _ = queue.submit(now, request(id, 1)).expect("taken in");
    }
}

fn ones(count: usize) -> Vec<Request> {
    (0..count).map(|id| request(id, 1)).collect()
}

#[test]
fn each_batch_has_its_reason() {
    assert_eq!(next_batches(4, &[4], 10, &ones(4), 0), [(4, Why::Preferred)]);
    assert_eq!(next_batches(4, &[], 0, &ones(2), 0), [(2, Why::NoDelay)]);
    assert_eq!(next_batches(4, &[4], 10, &ones(2), 9), []);
    assert_eq!(next_batches(4, &[4], 10, &ones(2), 10), [(2, Why::Overdue)]);
    assert_eq!(next_batches(4, &[4], 10, &[request(0, 3), request(1, 3)], 0), [(1, Why::Full)]);
    let unlike = [request(0, 1), Request { id: 1, rows: 1, key: 7 }];
    assert_eq!(next_batches(4, &[4], 10, &unlike, 0), [(1, Why::Unlike)]);
}

#[test]
fn requests_that_run_alone_say_so() {
    let mut queue = ModelQueue::new(Scheduler::direct(), 1);
    let now = zero();
    let _ = queue.submit(now, request(0, 5)).expect("taken in");
    let _ = queue.submit(now, request(1, 1)).expect("taken in");
    assert_eq!(queue.next(now, 0, &mut Vec::new()).0, Next::Take);
    let explanation = queue.explain(now);
    assert_eq!(
        explanation.decisions,
        [(now, Decision::Took { instance: 0, requests: 1, rows: 5, left: 1, why: Why::Alone })]
    );
    assert_eq!(explanation.outlook, Some(Outlook { due: now, requests: 1, why: Why::Alone }));
}

#[test]
fn a_batch_of_a_version_that_drains_says_so() {
    let (start, mut batch) = (zero(), Vec::new());
    let mut queue = ModelQueue::new(Scheduler::dynamic(policy(4, &[4], ms(10))), 1);
    let _ = queue.submit(start, request(0, 1)).expect("taken in");
    let _ = queue.stop(start);
    assert_eq!(queue.next(start, 0, &mut batch).0, Next::Take);
    assert!(queue.submit(start, request(1, 1)).is_err());
    let explanation = queue.explain(start);
    assert_eq!(reasons(&explanation), [(1, Why::Draining)]);
    assert_eq!(explanation.decisions[0].1, Decision::Stopped);
    assert_eq!(explanation.decisions[2].1, Decision::Refused { requests: 1 });
}

#[test]
fn the_explanation_names_what_holds_the_next_batch() {
    let start = zero();
    let mut queue = ModelQueue::new(Scheduler::dynamic(policy(4, &[4], ms(10))), 1);
    assert_eq!(queue.explain(start).hold, Hold::Nothing);
    assert_eq!(queue.submit(start, request(0, 1)).expect("taken in"), Effect::Start(0));
    assert_eq!(queue.next(start, 0, &mut Vec::new()).0, Next::WaitUntil(start + ms(10)));
    let explanation = queue.explain(start + ms(3));
    assert_eq!(
        (explanation.hold, explanation.waiting, explanation.instances, explanation.busy),
        (Hold::Company, 1, 1, 0)
    );
    assert_eq!(explanation.outlook, Some(Outlook { due: start + ms(10), requests: 1, why: Why::Company }));
    assert_eq!(explanation.decisions, [(start, Decision::Waits { instance: 0, until: start + ms(10) })]);
    assert_eq!(queue.next(start + ms(10), 0, &mut Vec::new()).0, Next::Take);
    submit(&mut queue, start + ms(11), 1..5);
    let explanation = queue.explain(start + ms(11));
    assert_eq!((explanation.hold, explanation.waiting, explanation.busy), (Hold::Busy, 4, 1));
    assert_eq!(explanation.outlook.map(|outlook| (outlook.requests, outlook.why)), Some((4, Why::Preferred)));
    let _ = queue.finish(start + ms(12), 0);
    assert_eq!(queue.explain(start + ms(12)).hold, Hold::Busy, "the instance was claimed for them");
}

#[test]
fn a_queue_without_instances_says_so() {
    let now = zero();
    let mut queue = ModelQueue::new(Scheduler::direct(), 1);
    let _ = queue.rearrange(now, &[]);
    assert_eq!(queue.submit(now, request(0, 1)).expect("taken in"), Effect::None);
    let explanation = queue.explain(now);
    assert_eq!((explanation.hold, explanation.instances), (Hold::NoInstance, 0));
    assert_eq!(explanation.decisions, [(now, Decision::Rearranged { instances: 0 })]);
}

#[test]
fn withdrawn_and_returned_requests_are_noted_and_nothing_else_is() {
    let (now, mut removed) = (zero(), Vec::new());
    let mut queue = ModelQueue::new(Scheduler::direct(), 1);
    submit(&mut queue, now, 0..4);
    let _ = queue.cancel(now, &mut |_| false, &mut removed);
    let _ = queue.put_back(now, &mut std::iter::empty());
    assert_eq!(queue.explain(now).decisions, []);
    let _ = queue.cancel(now, &mut |request| request.id < 2, &mut removed);
    let _ = queue.put_back(now, &mut removed.drain(1..));
    let noted: Vec<_> = queue.explain(now).decisions.into_iter().map(|(_, decision)| decision).collect();
    assert_eq!(noted, [Decision::Withdrew { requests: 2 }, Decision::PutBack { requests: 1 }]);
}

#[test]
fn as_many_waiting_requests_are_shown_as_wanted_in_their_order() {
    let now = zero();
    for scheduler in [Scheduler::direct(), Scheduler::dynamic(policy(4, &[4], ms(10)))] {
        let mut queue = ModelQueue::new(scheduler, 1);
        submit(&mut queue, now, 0..9);
        let mut seen = Vec::new();
        queue.look(&mut |request| {
            seen.push(request.id);
            if seen.len() < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        assert_eq!(seen, [0, 1, 2]);
    }
}
