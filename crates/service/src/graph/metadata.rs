//! What a graph says about itself as a model.

use std::sync::Arc;

use alipes_graph::Graph;
use alipes_runtime::model::ModelVersion;

use super::ports::{GraphPort, GraphPorts};
use super::tensor_graph::GRAPH_VERSION;
use crate::{ModelMetadata, PortMetadata, Service};

/// The platform of a graph in metadata and configuration.
pub(super) const PLATFORM: &str = "kserve_inferencegraph";

impl Service {
    /// What a graph says about itself. It has inputs, or outputs, where its steps declare them and every request has
    /// the same.
    pub(crate) fn graph_metadata(&self, graph: &Graph) -> ModelMetadata {
        let models: Vec<Option<Arc<ModelVersion>>> =
            graph.services().iter().map(|destination| self.model_of(destination)).collect();
        let ports = GraphPorts::of(graph, &models);
        ModelMetadata {
            name: graph.name.clone(),
            versions: vec![GRAPH_VERSION.to_string()],
            platform: PLATFORM.to_owned(),
            inputs: known(ports.inputs()),
            outputs: known(ports.outputs()),
        }
    }
}

fn known(ports: Option<Vec<GraphPort>>) -> Vec<PortMetadata> {
    ports.unwrap_or_default().into_iter().map(PortMetadata::from).collect()
}
