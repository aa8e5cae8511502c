//! Requests from the wire that only the control plane can answer; its one thread pulls them.

use std::collections::VecDeque;
use std::time::Instant;

use alipes_protocol::{Code, InferError, Parameter};
use alipes_request::budget::Charge;
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

/// Most control requests that wait at a time: each holds a caller, and a longer queue would only hide a stuck loader.
const MAX_WAITING: usize = 1024;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlKind {
    /// Load, or load again.
    Load,
    /// Take out of service.
    Unload,
    /// Write the log by other settings; concerns no model.
    Log,
}

/// A request to change what is served, or how it is told of.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlRequest {
    /// What is asked.
    pub kind: ControlKind,
    /// Of which model; empty where it concerns none.
    pub model: String,
    /// The request's parameters.
    pub parameters: Vec<(String, Parameter)>,
}

/// A pulled request, to be answered once.
pub struct ControlCall {
    /// What is asked.
    pub request: ControlRequest,
    caller: oneshot::Sender<Result<(), InferError>>,
    /// Of the parameters, which the control plane has until it answers, also where its caller has left.
    _charge: Charge,
}

impl ControlCall {
    /// Answers the caller.
    pub fn reply(self, outcome: Result<(), InferError>) {
        let _ = self.caller.send(outcome);
    }
}

/// Control requests on their way from the wire to the control plane.
#[derive(Default)]
pub struct ControlQueue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    calls: VecDeque<ControlCall>,
    closed: bool,
}

impl ControlQueue {
    /// Queues a request, which is charged so much; the outcome arrives at the receiver.
    ///
    /// # Errors
    ///
    /// `Unavailable` where too many wait already, or the queue is closed.
    pub fn ask(
        &self,
        request: ControlRequest,
        charge: Charge,
    ) -> Result<oneshot::Receiver<Result<(), InferError>>, InferError> {
        let (caller, outcome) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            return Err(InferError::new(Code::Unavailable, "Server is stopping"));
        }
        if waiting.calls.len() >= MAX_WAITING {
            let text = format!("{MAX_WAITING} control requests wait already, try again later");
            return Err(InferError::new(Code::Unavailable, text));
        }
        waiting.calls.push_back(ControlCall { request, caller, _charge: charge });
        drop(waiting);
        self.changed.notify_one();
        Ok(outcome)
    }

    /// The next request, or none where the deadline came first or the queue is closed.
    pub fn next(&self, deadline: Instant) -> Option<ControlCall> {
        let mut waiting = self.waiting.lock();
        while waiting.calls.is_empty() && !waiting.closed {
            if self.changed.wait_until(&mut waiting, deadline).timed_out() {
                break;
            }
        }
        waiting.calls.pop_front()
    }

    /// Takes no more requests, drops those that wait, and wakes the thread that waits in `next`.
    pub fn close(&self) {
        let mut waiting = self.waiting.lock();
        waiting.closed = true;
        let dropped = std::mem::take(&mut waiting.calls);
        drop(waiting);
        self.changed.notify_all();
        drop(dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alipes_request::budget::Budget;

    #[test]
    fn a_pulled_request_is_answered_through_its_call() {
        let queue = ControlQueue::default();
        let request = ControlRequest { kind: ControlKind::Load, model: "m".into(), parameters: Vec::new() };
        let mut outcome = queue.ask(request.clone(), Charge::default()).unwrap();
        let call = queue.next(alipes_clock::now()).unwrap();
        assert_eq!(call.request, request);
        call.reply(Ok(()));
        assert_eq!(outcome.try_recv(), Ok(Ok(())));
        assert!(queue.next(alipes_clock::now()).is_none());
    }

    #[test]
    fn a_waiting_call_is_charged_until_its_answer() {
        let (queue, budget) = (ControlQueue::default(), Budget::new(100_000));
        let mut charge = Charge::default();
        charge.grow(&budget, 50_000).unwrap();
        let request = ControlRequest { kind: ControlKind::Load, model: "m".into(), parameters: Vec::new() };
        drop(queue.ask(request, charge).unwrap());
        let call = queue.next(alipes_clock::now()).unwrap();
        assert_eq!(budget.used(), 50_000);
        call.reply(Ok(()));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_closed_queue_takes_nothing_and_holds_nobody() {
        let queue = ControlQueue::default();
        let request = ControlRequest { kind: ControlKind::Unload, model: "m".into(), parameters: Vec::new() };
        let mut outcome = queue.ask(request.clone(), Charge::default()).unwrap();
        queue.close();
        assert!(outcome.try_recv().is_err());
        assert!(queue.next(alipes_clock::now() + std::time::Duration::from_secs(3600)).is_none());
        assert_eq!(queue.ask(request, Charge::default()).unwrap_err().code, Code::Unavailable);
    }
}
