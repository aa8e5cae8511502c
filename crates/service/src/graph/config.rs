//! The configuration of a graph, as clients of Triton read that of a model.

use std::sync::Arc;

use alipes_graph::Graph;
use alipes_protocol::InferError;
use alipes_runtime::model::ModelVersion;
use serde::Serialize;

use super::metadata::PLATFORM;
use super::ports::{GraphPort, GraphPorts};
use crate::Service;

/// The configuration of a name: that of a model, which its version has, or that of the graph.
pub enum NamedConfig {
    /// A model.
    Model(Arc<ModelVersion>),
    /// The graph.
    Graph(GraphConfig),
}

/// The configuration of a graph. It says what requests may hold, so it is as much of a configuration as a client needs.
#[derive(Debug, Serialize)]
pub struct GraphConfig {
    /// Its name.
    pub name: String,
    /// Not the platform of a model.
    pub platform: &'static str,
    backend: &'static str,
    version_policy: OneVersion,
    /// Rows that every step takes; 0 where a step takes none, or is a service elsewhere.
    pub max_batch_size: u32,
    /// What a request has to have; none where that is not known.
    pub input: Vec<ConfigPort>,
    /// What a response has; none where that is not known.
    pub output: Vec<ConfigPort>,
    instance_group: [(); 0],
    /// How many responses there are.
    pub model_transaction_policy: TransactionPolicy,
}

/// An input or output, without the batch dimension.
#[derive(Debug, Serialize)]
pub struct ConfigPort {
    /// Its name.
    pub name: String,
    /// Its datatype, by its name in configurations.
    pub data_type: &'static str,
    /// Its sizes; -1 stands for any.
    pub dims: Vec<i64>,
}

/// Whether a request has one response.
#[derive(Debug, Serialize)]
pub struct TransactionPolicy {
    /// Whether it may have any number of them.
    pub decoupled: bool,
}

/// The newest version serves, which is the only one.
#[derive(Debug, Default, Serialize)]
struct OneVersion {
    latest: NewestVersions,
}

#[derive(Debug, Serialize)]
struct NewestVersions {
    num_versions: u32,
}

impl Default for NewestVersions {
    fn default() -> NewestVersions {
        NewestVersions { num_versions: 1 }
    }
}

impl Service {
    /// The configuration of a model, or of the graph.
    ///
    /// # Errors
    ///
    /// As for `lookup` and `graph`.
    pub fn model_config(&self, name: &str, version: &str) -> Result<NamedConfig, InferError> {
        match self.graph(name, version)? {
            Some(graph) => Ok(NamedConfig::Graph(self.graph_config(graph))),
            None => self.lookup(name, version).map(NamedConfig::Model),
        }
    }

    fn graph_config(&self, graph: &Graph) -> GraphConfig {
        let models: Vec<Option<Arc<ModelVersion>>> =
            graph.services().iter().map(|destination| self.model_of(destination)).collect();
        let sizes = models.iter().map(|model| model.as_ref().map_or(0, |model| model.spec.max_batch_size));
        let max_batch_size = sizes.min().unwrap_or_default();
        let ports = GraphPorts::of(graph, &models);
        let known = |ports: Option<Vec<GraphPort>>| {
            ports.unwrap_or_default().into_iter().map(|port| ConfigPort::of(port, max_batch_size > 0)).collect()
        };
        GraphConfig {
            name: graph.name.clone(),
            platform: PLATFORM,
            backend: "",
            version_policy: OneVersion::default(),
            max_batch_size,
            input: known(ports.inputs()),
            output: known(ports.outputs()),
            instance_group: [],
            model_transaction_policy: TransactionPolicy {
                decoupled: models.iter().flatten().any(|model| model.is_decoupled()),
            },
        }
    }
}

impl ConfigPort {
    fn of(port: GraphPort, is_batched: bool) -> ConfigPort {
        // Where every step takes rows, every shape has the batch dimension in front.
        let dims = port.shape[usize::from(is_batched).min(port.shape.len())..].to_vec();
        ConfigPort { name: port.name.into(), data_type: port.datatype.row().config_name, dims }
    }
}
