//! Scheduling of a model: direct, dynamic batching with its queue policies, or sequences.

use serde::Deserialize;

use crate::sequences::SequenceSpec;

/// Which scheduler a model has.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Scheduling {
    /// One request after the other.
    Direct {},
    /// Requests are grouped within a delay.
    Dynamic(DynamicSpec),
    /// Requests of a sequence go to one instance, one after the other.
    Sequence(SequenceSpec),
}

impl Scheduling {
    /// The sequence scheduling, of models that have it.
    pub fn sequences(&self) -> Option<&SequenceSpec> {
        match self {
            Scheduling::Sequence(spec) => Some(spec),
            Scheduling::Direct {} | Scheduling::Dynamic(_) => None,
        }
    }
}

/// Dynamic batching: batch sizes, delay, priority levels and queue policies.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DynamicSpec {
    /// Batch sizes to aim for, in rows; empty means the largest batch.
    pub preferred_batch_sizes: Vec<u32>,
    /// Longest queue delay, in microseconds.
    pub max_queue_delay_us: u64,
    /// Responses leave in the order in which requests arrived.
    #[serde(default)]
    pub preserve_ordering: bool,
    /// Number of priority levels, 1 the highest; 0 turns priorities off.
    #[serde(default)]
    pub priority_levels: u64,
    /// Level of requests that name none.
    #[serde(default)]
    pub default_priority_level: u64,
    /// Queue policy of levels without one of their own.
    #[serde(default)]
    pub default_queue_policy: QueuePolicySpec,
    /// Queue policies of single levels.
    #[serde(default)]
    pub priority_queue_policies: Vec<LevelPolicySpec>,
    /// The first execution waits until so many requests are queued; later ones do not.
    #[serde(default)]
    pub held_until: usize,
}

/// Queue policy: limits on waiting. 0 means no limit.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueuePolicySpec {
    /// Timeout action: true moves a request that timed out behind the others, false rejects it.
    pub delay: bool,
    /// Queue timeout, in microseconds.
    pub default_timeout_us: u64,
    /// A request may set a shorter timeout.
    pub allow_timeout_override: bool,
    /// Most queued requests.
    pub max_queue_size: usize,
}

/// Queue policy of one priority level.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelPolicySpec {
    /// The level.
    pub level: u64,
    /// Its policy.
    pub policy: QueuePolicySpec,
}
