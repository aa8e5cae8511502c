//! The graph that a server runs.

use std::sync::Arc;

use alipes_graph::{Graph, GraphSpec};
use serde::{Deserialize, Deserializer, de::Error};

/// Reads a graph; none where there is none.
///
/// # Errors
///
/// The document is no graph that could be run.
pub fn graph<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<Graph>>, D::Error> {
    let spec = Option::<GraphSpec>::deserialize(deserializer)?;
    let graph = spec.map(|spec| Graph::of(&spec).map(Arc::new)).transpose();
    graph.map_err(|fault| D::Error::custom(format!("the graph cannot be run: {fault}")))
}
