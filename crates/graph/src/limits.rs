//! Bounds of graphs and of what their steps exchange.

/// Most calls that one request of a graph may cause: nodes that name each other several times multiply.
pub const GRAPH_MAX_CALLS: u64 = 1000;

/// Deepest JSON that a graph takes apart, in levels: of an ensemble's parts, and of predictions that become instances.
/// Each level takes stack. KServe's router takes 10,000.
pub const GRAPH_MAX_JSON_DEPTH: usize = 200;
