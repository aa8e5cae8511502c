//! The queue of a version as the rest of the server meets it: what a transition leaves behind is seen to after each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use alipes_protocol::trace::Moment;
use alipes_protocol::{Code, CorrelationId, InferError, Origin, SequenceInfo};
use alipes_request::check::has_id;
use alipes_request::responder::AnswerBatch;
use alipes_request::visit::StateTensor;
use alipes_scheduler::{Aftermath, Membership, Reason, Refused, SequenceId, SlotId, Work};
use alipes_spec::log::WARNING;
use alipes_stats::clock;
use alipes_stats::events::Event;
use alipes_stats::statistics::FailureReason;
use parking_lot::MutexGuard;

use super::{ModelVersion, Pending, PendingQueue, PendingRequest};
use crate::executor::alarm;

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
        // A visit that nobody waits for any more does no harm; withdrawn, it would take its sequence along.
        self.responder.is_cancelled() && !self.is_visit()
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    fn sequence_id(&self) -> Option<SequenceId> {
        let sequence = self.sequence();
        let is_alone = self.checked.context.as_ref().is_none_or(|context| context.is_alone);
        (!is_alone && has_id(sequence)).then(|| sequence_id(&sequence.correlation_id))
    }

    fn membership(&self) -> Membership {
        let sequence = self.sequence();
        Membership { start: sequence.start, end: sequence.end }
    }

    fn assign_slot(&mut self, slot_id: SlotId) {
        if let Some(context) = &mut self.checked.context {
            context.slot_id = slot_id;
        }
    }

    fn slot_id(&self) -> SlotId {
        self.checked.context.as_ref().map_or_else(SlotId::default, |context| context.slot_id)
    }
}

/// A sequence as the queue knows it.
fn sequence_id(id: &CorrelationId) -> SequenceId {
    match id {
        CorrelationId::Number(number) => SequenceId::Number(*number),
        CorrelationId::Text(text) => SequenceId::Text(text.as_str().into()),
    }
}

impl PendingRequest {
    /// What it says of its sequence; nothing where the model does not look.
    pub fn sequence(&self) -> &SequenceInfo {
        const NONE: &SequenceInfo =
            &SequenceInfo { correlation_id: CorrelationId::Number(0), start: false, end: false };
        self.checked.context.as_ref().map_or(NONE, |context| &context.sequence)
    }

    /// The control or the state that came with it, as with a warm-up sample, in place of the server's own.
    pub fn override_of(&self, name: &str) -> Option<&StateTensor> {
        let overrides = &self.checked.context.as_ref()?.overrides;
        overrides.iter().find(|(input, _)| input == name).map(|(_, tensor)| tensor)
    }

    /// Whether it only fills the row of a sequence that has no request now.
    pub fn is_filler(&self) -> bool {
        self.checked.context.as_ref().is_some_and(|context| context.is_filler)
    }
}

impl ModelVersion {
    /// The queue, to be looked at. What changes it goes through [`with_queue`](Self::with_queue).
    pub fn queue(&self) -> MutexGuard<'_, Box<PendingQueue>> {
        self.queue.lock()
    }

    /// Whether a sequence is live here, in the queue or in the driver.
    pub fn knows_sequence(&self, id: &CorrelationId) -> bool {
        match self.driver.sequence_states() {
            Some(states) => states.knows(id),
            None => self.queue().knows(&sequence_id(id)),
        }
    }

    /// Changes the queue under its mutex, and sees to what it leaves behind once the mutex is released: requests that
    /// will not be executed are answered, and the alarm is set. The effect is the caller's.
    pub fn with_queue<T>(self: &Arc<Self>, change: impl FnOnce(&mut PendingQueue, Instant) -> T) -> T {
        let mut queue = self.queue.lock();
        let now = alipes_clock::now();
        let outcome = change(&mut **queue, now);
        let aftermath = queue.aftermath(now);
        drop(queue);
        if let Some(aftermath) = aftermath {
            self.settle(aftermath);
        }
        outcome
    }

    /// Handles the version's alarm.
    pub fn expire(self: &Arc<Self>) {
        self.driver.expire(self);
    }

    /// A caller has gone: what it asked for leaves the queue.
    pub fn caller_left(self: &Arc<Self>) {
        let effect = self.with_queue(|queue, now| queue.caller_left(now));
        self.carry_out(effect);
    }

    #[cold]
    fn settle(self: &Arc<Self>, Aftermath { refused, alarm, conflicts }: Aftermath<Pending>) {
        if let Some(moment) = alarm {
            alarm::set(self, moment);
        }
        let mut outgoing = AnswerBatch::default();
        refused.into_iter().for_each(|refused| self.give_back(refused, &mut outgoing));
        outgoing.send();
        conflicts.iter().for_each(|id| self.warn_of_conflict(id));
    }

    /// Source: Triton's text.
    fn warn_of_conflict(&self, id: &SequenceId) {
        let Some(events) = &self.events else { return };
        let id = match id {
            SequenceId::Number(number) => number.to_string(),
            SequenceId::Text(text) => text.to_string(),
        };
        let text = format!(
            "sequence {id} for model '{}' has a conflict. The previous sequence did not end before this sequence start. \
             Previous sequence will be terminated early.",
            self.name
        );
        events.push(Event::Notice { level: WARNING, text });
    }

    /// Answers a request that was taken in and will not be executed.
    fn give_back(&self, Refused { work, reason }: Refused<Pending>, outgoing: &mut AnswerBatch) {
        let spent = alipes_clock::elapsed(work.arrived);
        match reason {
            Reason::Cancelled => self.statistics.failed(counted_as(reason), spent),
            _ => self.statistics.failed_unanswered(counted_as(reason), spent),
        }
        if let Some(trace) = &work.trace {
            let now = clock::now_ns();
            if reason != Reason::Cancelled {
                trace.note_response(now);
            }
            trace.note(Moment::RequestEnd, now);
        }
        match reason {
            Reason::Cancelled => work.responder.dismiss(),
            _ => {
                let error = refusal(&self.name, reason, &work).at(Origin::Model);
                outgoing.add(work.responder, Err(error));
            }
        }
    }
}

/// The error of a request that the queue refuses. Source: Triton's texts.
pub(super) fn refusal(model: &str, reason: Reason, work: &Pending) -> InferError {
    match reason {
        Reason::Stopping => InferError::new(Code::Unavailable, STOPPING),
        Reason::QueueFull => {
            InferError::new(Code::Unavailable, work.checked.terms.prefix() + "Exceeds maximum queue size")
        }
        Reason::Expired => InferError::new(Code::Unavailable, "Request timeout expired"),
        Reason::Cancelled => InferError::new(Code::Cancelled, "the caller has gone"),
        Reason::NotStarted if work.is_visit() => {
            InferError::new(Code::NotFound, format!("model '{model}' has no live sequence {}", shown(work.sequence())))
        }
        Reason::NotStarted => InferError::invalid(format!(
            "inference request for sequence {} to model '{model}' must specify the START flag on the first request of the \
             sequence",
            id_text(work.sequence())
        )),
        Reason::BacklogExpired if work.is_visit() => InferError::new(
            Code::Unavailable,
            format!(
                "model '{model}' has no slot for sequence {}: end another, or give the model more instances",
                shown(work.sequence())
            ),
        ),
        Reason::BacklogExpired => {
            InferError::new(Code::Unavailable, "timeout of the corresponding sequence has been expired")
        }
        Reason::Interrupted => InferError::new(
            Code::Cancelled,
            format!(
                "sequence {} to model '{model}' is over, since a request before this one was withdrawn",
                id_text(work.sequence())
            ),
        ),
        Reason::InstanceGone => InferError::new(
            Code::Unavailable,
            format!(
                "sequence {} to model '{model}' is over, since its instance is no longer in service",
                id_text(work.sequence())
            ),
        ),
    }
}

/// The sequence's id as the way to its state spells it, so that a text is not taken for a number.
fn shown(sequence: &SequenceInfo) -> String {
    match &sequence.correlation_id {
        CorrelationId::Number(number) => number.to_string(),
        CorrelationId::Text(text) => format!("'{text}'"),
    }
}

fn id_text(sequence: &SequenceInfo) -> String {
    match &sequence.correlation_id {
        CorrelationId::Number(number) => number.to_string(),
        CorrelationId::Text(text) => text.clone(),
    }
}

fn counted_as(reason: Reason) -> FailureReason {
    match reason {
        Reason::Cancelled | Reason::Interrupted => FailureReason::Canceled,
        Reason::InstanceGone => FailureReason::Other,
        Reason::Stopping | Reason::QueueFull | Reason::Expired | Reason::NotStarted | Reason::BacklogExpired => {
            FailureReason::Rejected
        }
    }
}
