//! How a model wants its batches formed, and how long and how many requests may wait for it.

use std::time::{Duration, Instant};

use crate::work::Work;

/// Longest span that is honoured. No request waits a year; the bound keeps `now + span` inside what the clock can
/// express, whatever number a configuration file holds.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How a model wants its batches formed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DynamicPolicy {
    /// Most rows in a batch; zero, a model without a batch dimension, counts as one.
    pub max_batch_size: u32,
    /// Sizes in rows that are executed as soon as they are reached; empty stands for `[max_batch_size]`.
    pub preferred_batch_sizes: Vec<u32>,
    /// Longest wait for company, counted from the entry of the oldest waiting request. Zero never waits.
    pub max_queue_delay: Duration,
    /// Who goes first, and who may wait.
    pub priorities: Priorities,
    /// Nothing is executed before so many requests wait, once. Lets a test lay a queue out before the first batch.
    pub held_until: usize,
}

impl DynamicPolicy {
    /// The policy with its defaults filled in and its numbers within what the clock can express.
    pub(crate) fn settled(mut self) -> DynamicPolicy {
        self.max_batch_size = self.max_batch_size.max(1);
        self.max_queue_delay = self.max_queue_delay.min(LONGEST);
        if self.preferred_batch_sizes.is_empty() {
            self.preferred_batch_sizes.push(self.max_batch_size);
        }
        self
    }

    /// This policy with other batches, of at most so many rows.
    pub(crate) fn batched(self, batching: Batching, largest: u32) -> DynamicPolicy {
        let batch = batching.batch.clamp(1, largest);
        let max_queue_delay = batching.max_queue_delay.min(LONGEST);
        DynamicPolicy { max_batch_size: batch, preferred_batch_sizes: vec![batch], max_queue_delay, ..self }
    }
}

/// The part of a policy that may change while requests wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batching {
    /// Longest wait for company.
    pub max_queue_delay: Duration,
    /// Rows that a batch waits for and does not exceed; never more than the model takes. A single request with more
    /// rows runs alone.
    pub batch: u32,
}

/// The levels of priority and what each of them allows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Priorities {
    /// How many levels there are, 1 being the highest. With zero there is one, whatever requests say.
    pub levels: u64,
    /// The level of requests that name none, or none that there is.
    pub default_level: u64,
    /// What levels without a policy of their own allow.
    pub default_policy: QueuePolicy,
    /// Levels with a policy of their own.
    pub policies: Vec<(u64, QueuePolicy)>,
}

impl Priorities {
    /// The level at which a request waits.
    pub(crate) fn level_of(&self, priority: u64) -> u64 {
        match self.levels {
            0 => 0,
            levels if (1..=levels).contains(&priority) => priority,
            _ => self.default_level,
        }
    }

    /// What a level allows.
    pub(crate) fn policy_of(&self, level: u64) -> QueuePolicy {
        let own = self.policies.iter().find(|(owner, _)| *owner == level);
        own.map_or(self.default_policy, |(_, policy)| *policy)
    }

    /// Whether all requests wait in the order of arrival, for as long as it takes, whatever their priority.
    pub fn are_plain(&self) -> bool {
        self.levels < 2 && self.default_policy.is_open() && self.policies.iter().all(|(_, policy)| policy.is_open())
    }
}

/// Limits on waiting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueuePolicy {
    /// What becomes of a request that has waited too long.
    pub timeout_action: TimeoutAction,
    /// How long is too long; zero for never.
    pub default_timeout: Duration,
    /// Whether a request may bring a shorter limit of its own.
    pub allow_timeout_override: bool,
    /// Most requests that may wait; zero for any number.
    pub max_queue_size: usize,
}

/// What becomes of a request that has waited too long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TimeoutAction {
    /// It is given back.
    #[default]
    Reject,
    /// It stands behind all others of its level that have not waited too long, and waits on without a limit.
    Delay,
}

impl QueuePolicy {
    /// When a request that is taken in now has waited too long.
    ///
    /// A request's own limit counts only where it is shorter than the policy's, so not where the policy has none.
    pub(crate) fn deadline(&self, now: Instant, work: &impl Work) -> Option<Instant> {
        let mut timeout = self.default_timeout.min(LONGEST);
        if timeout.is_zero() {
            return None;
        }
        let own = work.timeout();
        if self.allow_timeout_override && !own.is_zero() {
            timeout = timeout.min(own);
        }
        Some(now + timeout)
    }

    fn is_open(&self) -> bool {
        self.default_timeout.is_zero() && self.max_queue_size == 0
    }
}
