//! Requests from the wire that only the control plane can answer; its one thread pulls them.

use std::collections::VecDeque;
use std::time::Instant;

use alipes_protocol::{Code, InferError, Parameter};
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
}

/// A request to change what is served.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlRequest {
    /// What is asked.
    pub kind: ControlKind,
    /// Of which model.
    pub model: String,
    /// The request's parameters.
    pub parameters: Vec<(String, Parameter)>,
}

/// A pulled request, to be answered once.
pub struct ControlCall {
    /// What is asked.
    pub request: ControlRequest,
    caller: oneshot::Sender<Result<(), InferError>>,
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
    calls: Mutex<VecDeque<ControlCall>>,
    arrived: Condvar,
}

impl ControlQueue {
    /// Queues a request; the outcome arrives at the receiver.
    ///
    /// # Errors
    ///
    /// `Unavailable` where too many wait already.
    pub fn ask(&self, request: ControlRequest) -> Result<oneshot::Receiver<Result<(), InferError>>, InferError> {
        let (caller, outcome) = oneshot::channel();
        let mut calls = self.calls.lock();
        if calls.len() >= MAX_WAITING {
            let text = format!("{MAX_WAITING} repository requests wait already, try again later");
            return Err(InferError::new(Code::Unavailable, text));
        }
        calls.push_back(ControlCall { request, caller });
        drop(calls);
        self.arrived.notify_one();
        Ok(outcome)
    }

    /// The next request, or none where the deadline came first.
    pub fn next(&self, deadline: Instant) -> Option<ControlCall> {
        let mut calls = self.calls.lock();
        while calls.is_empty() {
            if self.arrived.wait_until(&mut calls, deadline).timed_out() {
                break;
            }
        }
        calls.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pulled_request_is_answered_through_its_call() {
        let queue = ControlQueue::default();
        let request = ControlRequest { kind: ControlKind::Load, model: "m".into(), parameters: Vec::new() };
        let mut outcome = queue.ask(request.clone()).unwrap();
        let call = queue.next(Instant::now()).unwrap();
        assert_eq!(call.request, request);
        call.reply(Ok(()));
        assert_eq!(outcome.try_recv(), Ok(Ok(())));
        assert!(queue.next(Instant::now()).is_none());
    }
}
