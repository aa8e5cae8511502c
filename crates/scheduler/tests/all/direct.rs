//! Without batching: the order of arrival, one request at a time.

use crate::common::{Request, ids, request, zero};
use alipes_scheduler::{Next, Reason, Scheduler};

fn with_requests(count: usize) -> Scheduler<Request> {
    let mut scheduler = Scheduler::direct();
    (0..count).for_each(|id| scheduler.enqueue(zero(), request(id, 4)).expect("it was not stopped"));
    scheduler
}

#[test]
fn requests_run_alone_in_the_order_of_arrival() {
    let mut scheduler = with_requests(2);
    for id in 0..2 {
        let mut batch = Vec::new();
        assert_eq!(scheduler.next(zero(), &mut batch), Next::Take);
        assert_eq!(ids(&batch), [id]);
    }
    assert_eq!(scheduler.next(zero(), &mut Vec::new()), Next::Idle);
}

#[test]
fn removing_keeps_the_order_of_the_rest() {
    let mut scheduler = with_requests(4);
    let mut removed = Vec::new();
    scheduler.remove_where(|request| request.id % 2 == 0, &mut removed);
    assert_eq!(ids(&removed), [0, 2]);
    scheduler.drain_all(&mut removed);
    assert_eq!(ids(&removed), [0, 2, 1, 3]);
}

#[test]
fn a_stopped_scheduler_refuses_but_lets_the_waiting_go() {
    let mut scheduler = with_requests(1);
    scheduler.stop();
    let refused = scheduler.enqueue(zero(), request(1, 1)).expect_err("it was stopped");
    assert_eq!((refused.work.id, refused.reason), (1, Reason::Stopping));
    assert_eq!(scheduler.next(zero(), &mut Vec::new()), Next::Take);
}
