//! The graph as a model: its requests are tensors, which go from step to step as they are.
//!
//! That takes a graph whose steps are all models of this server. Any other takes JSON alone, over HTTP.

mod answer;
mod body;
mod calls;
mod config;
mod metadata;
mod ports;
mod readiness;
mod responses;
mod statistics;
mod tensor_graph;

pub use self::config::{ConfigPort, GraphConfig, NamedConfig, TransactionPolicy};
pub use self::responses::GraphResponses;
pub use self::tensor_graph::{GRAPH_VERSION, TensorGraph};
pub use crate::graph_runs::GraphRun;
