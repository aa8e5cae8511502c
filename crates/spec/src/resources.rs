//! What executions take, and how much of it there is.

use serde::Deserialize;

/// A resource: how much of it there is, or how much an execution takes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceSpec {
    /// Its name.
    pub name: String,
    /// It is one for the whole machine; else each device has its own. Of no meaning where it says how much there is.
    #[serde(default)]
    pub global: bool,
    /// How much.
    pub count: u32,
}

/// What an execution of one instance takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSpec {
    /// The resources.
    pub resources: Vec<ResourceSpec>,
    /// Its weight: one of priority 2 has half the turns of one of priority 1. 0 counts as 1.
    pub priority: u32,
}
