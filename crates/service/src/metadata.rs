//! What the server and its models say about themselves.

use alipes_protocol::InferError;
use alipes_spec::{ModelSpec, Port};
use serde::Serialize;

use super::Service;

/// Extensions of the protocol, in Triton's order. Source: Triton 2.51's server metadata.
const EXTENSIONS: [&str; 13] = [
    "classification",
    "sequence",
    "model_repository",
    "model_repository(unload_dependents)",
    "schedule_policy",
    "model_configuration",
    "system_shared_memory",
    "cuda_shared_memory",
    "binary_tensor_data",
    "parameters",
    "statistics",
    "trace",
    "logging",
];

/// What the server says about itself.
#[derive(Clone, Debug, Serialize)]
pub struct ServerMetadata {
    /// Its id.
    pub name: String,
    /// Release of the protocol.
    pub version: &'static str,
    /// Extensions of the protocol.
    pub extensions: &'static [&'static str],
}

/// An input or output of a model, with the batch dimension.
#[derive(Clone, Debug, Serialize)]
pub struct PortMetadata {
    /// Its name.
    pub name: String,
    /// Its datatype's wire name.
    pub datatype: &'static str,
    /// Its sizes; -1 stands for any.
    pub shape: Vec<i64>,
}

/// What a model says about itself.
#[derive(Clone, Debug, Serialize)]
pub struct ModelMetadata {
    /// Its name.
    pub name: String,
    /// The versions that are ready, or the requested one.
    pub versions: Vec<String>,
    /// Its platform, else its backend.
    pub platform: String,
    /// Its inputs.
    pub inputs: Vec<PortMetadata>,
    /// Its outputs.
    pub outputs: Vec<PortMetadata>,
}

impl Service {
    /// What the server says about itself.
    pub fn server_metadata(&self) -> ServerMetadata {
        ServerMetadata {
            name: self.config.id.clone(),
            version: self.config.triton_release.version(),
            extensions: &EXTENSIONS,
        }
    }

    /// What a model says about itself, or the graph.
    ///
    /// # Errors
    ///
    /// `NotFound` for an unknown name or version.
    pub fn model_metadata(&self, name: &str, version: &str) -> Result<ModelMetadata, InferError> {
        if let Some(graph) = self.graph(name, version)? {
            return Ok(self.graph_metadata(graph));
        }
        let model = self.lookup(name, version)?;
        let versions = if version.is_empty() {
            let models = self.registry.models();
            let served = models.get(name).into_iter().flat_map(|served| served.versions());
            served.map(|version| version.spec.version.to_string()).collect()
        } else {
            vec![model.spec.version.to_string()]
        };
        let spec = &model.spec;
        Ok(ModelMetadata {
            name: spec.name.clone(),
            versions,
            platform: spec.platform.clone(),
            inputs: spec.inputs.iter().map(|port| port_metadata(spec, port)).collect(),
            outputs: spec.outputs.iter().map(|port| port_metadata(spec, port)).collect(),
        })
    }
}

fn port_metadata(spec: &ModelSpec, port: &Port) -> PortMetadata {
    let batch = (spec.max_batch_size > 0).then_some(-1);
    PortMetadata {
        name: port.name.clone(),
        datatype: port.datatype.name(),
        shape: batch.into_iter().chain(port.dims.iter().copied()).collect(),
    }
}
