//! The queue of a version as the rest of the server meets it: what a transition leaves behind is seen to after each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use alipes_protocol::trace::Moment;
use alipes_protocol::{Code, InferError, Origin};
use alipes_scheduler::{Aftermath, ModelQueue, Reason, Refused, Work};
use parking_lot::MutexGuard;

use super::{ModelVersion, Pending};
use crate::books::statistics::FailureReason;
use crate::executor::alarm;
use crate::executor::answer::Parcels;
use crate::workers::clock;

const STOPPING: &str = "Server is stopping, scheduler for model has stopped accepting new inference requests";

impl Work for Pending {
    fn rows(&self) -> u32 {
        self.checked.rows
    }

    fn key(&self) -> u64 {
        self.checked.key
    }

    fn priority(&self) -> u64 {
        self.checked.terms.priority
    }

    fn timeout(&self) -> Duration {
        Duration::from_micros(self.checked.terms.timeout_us)
    }

    fn is_cancelled(&self) -> bool {
        self.responder.is_cancelled()
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }
}

impl ModelVersion {
    /// The queue, to be looked at. What changes it goes through [`with_queue`](Self::with_queue).
    pub fn queue(&self) -> MutexGuard<'_, ModelQueue<Pending>> {
        self.queue.lock()
    }

    /// Changes the queue under its mutex, and sees to what it leaves behind once the mutex is released: requests that will
    /// not be executed are answered, and the alarm is set. The effect is the caller's.
    pub fn with_queue<T>(self: &Arc<Self>, change: impl FnOnce(&mut ModelQueue<Pending>, Instant) -> T) -> T {
        let mut queue = self.queue.lock();
        let now = Instant::now();
        let outcome = change(&mut queue, now);
        let aftermath = queue.aftermath(now);
        drop(queue);
        if let Some(aftermath) = aftermath {
            self.settle(aftermath);
        }
        outcome
    }

    /// The alarm has gone off.
    pub fn expire(self: &Arc<Self>) {
        let effect = self.with_queue(ModelQueue::expire);
        self.carry_out(effect);
    }

    /// A caller has gone: what it asked for leaves the queue.
    pub fn caller_left(self: &Arc<Self>) {
        let effect = self.with_queue(ModelQueue::caller_left);
        self.carry_out(effect);
    }

    #[cold]
    fn settle(self: &Arc<Self>, Aftermath { refused, alarm }: Aftermath<Pending>) {
        if let Some(moment) = alarm {
            alarm::set(self, moment);
        }
        let mut parcels = Parcels::default();
        refused.into_iter().for_each(|refused| self.give_back(refused, &mut parcels));
        parcels.send();
    }

    /// Answers a request that was taken in and will not be executed.
    fn give_back(&self, Refused { work, reason }: Refused<Pending>, parcels: &mut Parcels) {
        self.statistics.failed(counted_as(reason), work.arrived.elapsed());
        if let Some(trace) = &work.trace {
            trace.note(Moment::RequestEnd, clock::now_ns());
        }
        match reason {
            Reason::Cancelled => work.responder.dismiss(),
            _ => {
                let error = refusal(reason, &work).at(Origin::Model);
                parcels.add(work.responder, Err(error));
            }
        }
    }
}

/// What the caller is told whose request the queue does not take in, or gives back. Source: Triton's texts.
pub(super) fn refusal(reason: Reason, work: &Pending) -> InferError {
    match reason {
        Reason::Stopping => InferError::new(Code::Unavailable, STOPPING),
        Reason::QueueFull => {
            InferError::new(Code::Unavailable, work.checked.terms.prefix() + "Exceeds maximum queue size")
        }
        Reason::Expired => InferError::new(Code::Unavailable, "Request timeout expired"),
        Reason::Cancelled => InferError::new(Code::Cancelled, "the caller has gone"),
    }
}

fn counted_as(reason: Reason) -> FailureReason {
    match reason {
        Reason::Cancelled => FailureReason::Canceled,
        Reason::Stopping | Reason::QueueFull | Reason::Expired => FailureReason::Rejected,
    }
}
