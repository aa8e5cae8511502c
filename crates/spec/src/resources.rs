//! Resources of the rate limiter: capacity of the server, and use by each execution.

use serde::Deserialize;

/// A resource with an amount: the server's capacity, or the use by one execution.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceSpec {
    /// Its name.
    pub name: String,
    /// One for the whole machine rather than one per device. Ignored where the amount is a capacity.
    #[serde(default)]
    pub global: bool,
    /// The amount.
    pub count: u32,
}

/// Resources that one instance takes for an execution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSpec {
    /// The resources.
    pub resources: Vec<ResourceSpec>,
    /// Its weight: an instance of priority 2 executes half as often as one of priority 1. 0 counts as 1.
    pub priority: u32,
}
