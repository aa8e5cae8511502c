//! The document of a graph, as the control plane writes it: KServe's fields, read and checked.

use std::collections::BTreeMap;

use serde::Deserialize;

/// How a node chooses among its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum RouterKind {
    /// One step after the other.
    Sequence,
    /// One of them, drawn by weight.
    Splitter,
    /// All of them at once; their answers become one.
    Ensemble,
    /// The first whose condition holds.
    Switch,
}

/// What a step calls.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetSpec {
    /// Another node of the graph.
    Node(String),
    /// A model of this server.
    Model(String),
    /// An address of HTTP.
    Url(String),
}

/// A step of a node.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepSpec {
    /// Its name within the node; empty for none.
    #[serde(default)]
    pub name: String,
    /// What it calls.
    pub target: TargetSpec,
    /// Whether it is sent the answer of the step before it, and not the request of its node.
    #[serde(default)]
    pub response: bool,
    /// Whether `predictions` of what it is sent become `instances`.
    #[serde(default)]
    pub map_predictions: bool,
    /// Its share of the requests of a splitter, in percent.
    #[serde(default)]
    pub weight: u32,
    /// When it is called; empty for always.
    #[serde(default)]
    pub condition: String,
    /// Whether its failure is the failure of its node.
    #[serde(default)]
    pub hard: bool,
}

/// A node.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSpec {
    /// How it chooses.
    pub kind: RouterKind,
    /// Its steps, in order.
    pub steps: Vec<StepSpec>,
}

/// A graph.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphSpec {
    /// Its name.
    pub name: String,
    /// Its nodes by name; requests begin at `root`.
    pub nodes: BTreeMap<String, NodeSpec>,
    /// Headers of a request that steps see too: regular expressions of names as Go writes them, `Test-Header`.
    #[serde(default)]
    pub propagate: Vec<String>,
    /// Longest time that a request may take, in seconds.
    pub timeout_s: f64,
    /// Longest time that a step's call over HTTP may take, in seconds; none where only that of the request counts.
    #[serde(default)]
    pub step_timeout_s: Option<f64>,
    /// File of the roots that certificates of steps lead to; none for those of the system.
    #[serde(default)]
    pub roots: Option<String>,
}
