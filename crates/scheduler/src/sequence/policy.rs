//! How a model wants its sequences scheduled.

use std::time::Duration;

use crate::policy::DynamicPolicy;

/// Longest silence that is honoured: a year, so that a moment plus it stays inside what the clock can express.
const LONGEST_IDLE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How a model wants its sequences scheduled.
#[derive(Debug, Clone, PartialEq)]
pub struct SequencePolicy {
    /// Who runs together.
    pub strategy: Strategy,
    /// Silence that ends a sequence: time in which nothing of it waits or runs.
    pub max_idle: Duration,
    /// Nothing runs before so many requests wait, in slots and in the backlog: for tests. Zero is none.
    pub hold: StartThreshold,
}

/// What has to wait before anything runs for the first time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StartThreshold {
    /// Requests of sequences that have a slot.
    pub in_slots: usize,
    /// Requests in the backlog.
    pub backlog: usize,
}

/// Who runs together.
#[derive(Debug, Clone, PartialEq)]
pub enum Strategy {
    /// Each sequence has a row of the batch of its own: a model may keep its state by row.
    Direct {
        /// Rows of a batch, and so the slots of an instance; zero, a model without a batch dimension, counts as one.
        slots: u32,
        /// Longest wait for company, counted from the arrival of the oldest request. Zero never waits.
        max_queue_delay: Duration,
        /// Share of the slots that have to be ready for a batch not to wait. Zero never waits.
        minimum_slot_utilization: f32,
    },
    /// The sequences whose next requests have waited longest: the model tells them apart by their ids.
    Oldest {
        /// Slots of an instance: sequences that it has at a time.
        max_candidate_sequences: u32,
        /// How their next requests are brought together.
        batching: DynamicPolicy,
    },
}

impl SequencePolicy {
    /// Slots of an instance.
    pub fn slots(&self) -> usize {
        let slots = match &self.strategy {
            Strategy::Direct { slots, .. } => *slots,
            Strategy::Oldest { max_candidate_sequences: 0, batching } => batching.max_batch_size,
            Strategy::Oldest { max_candidate_sequences, .. } => *max_candidate_sequences,
        };
        slots.max(1) as usize
    }

    /// This policy with its times within what the clock can express.
    pub(super) fn bounded(mut self) -> SequencePolicy {
        self.max_idle = self.max_idle.min(LONGEST_IDLE);
        if let Strategy::Direct { max_queue_delay, .. } = &mut self.strategy {
            *max_queue_delay = (*max_queue_delay).min(LONGEST_IDLE);
        }
        self
    }
}
