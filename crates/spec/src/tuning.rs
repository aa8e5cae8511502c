//! What a model that tunes itself is to keep, and within which limits.

use serde::Deserialize;

/// The objective of a model that tunes itself, and the limits of what is chosen for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuningSpec {
    /// What 99 of 100 requests are to be answered within, in microseconds.
    pub objective_p99_us: u64,
    /// Longest queue delay that may be chosen, in microseconds.
    pub max_queue_delay_us: u64,
    /// Largest batch that may be chosen, in rows.
    pub max_batch_size: u32,
    /// Most instances that may be in service; 0 for all that are loaded.
    pub max_instances: usize,
    /// How often the traffic is looked at, in milliseconds.
    pub period_ms: u64,
}
