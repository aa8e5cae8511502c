//! The graph by its name, and the models of its steps.

use std::sync::Arc;

use alipes_graph::{Destination, Graph};
use alipes_protocol::{Code, InferError, InferRequest};
use alipes_runtime::model::ModelVersion;
use alipes_runtime::registry::version_number;
use alipes_shared_memory::Held;

use crate::Service;

/// The one version of a graph.
pub const GRAPH_VERSION: i64 = 1;

/// A graph, and the model of each of its services.
pub struct TensorGraph {
    /// The graph.
    pub graph: Arc<Graph>,
    pub(super) models: Vec<Arc<ModelVersion>>,
}

impl TensorGraph {
    /// Whether a request may have any number of responses: a model that ends the graph is decoupled.
    pub fn is_decoupled(&self) -> bool {
        self.models.iter().any(|model| model.is_decoupled())
    }

    /// The rows of a request: where every step takes rows, those of its first input, else one.
    pub(super) fn rows(&self, request: &InferRequest) -> u32 {
        let is_batched = self.models.iter().all(|model| model.spec.max_batch_size > 0);
        let first = request.inputs.first().filter(|_| is_batched);
        let rows = first.and_then(|input| u32::try_from(*input.shape.first()?).ok());
        rows.unwrap_or_default().max(1)
    }

    /// Refuses tensors in the client's shared memory: steps exchange tensors, and write none there.
    ///
    /// # Errors
    ///
    /// `Unsupported` where the request has some.
    pub fn check_held(&self, held: &Held) -> Result<(), InferError> {
        if held.is_empty() {
            return Ok(());
        }
        Err(InferError::new(Code::Unsupported, "a graph takes no tensors in the client's shared memory"))
    }
}

impl Service {
    /// The graph of a name, where no model of this server has it.
    ///
    /// # Errors
    ///
    /// `NotFound` for another version than 1 of the graph, `InvalidArgument` for one that is no number.
    #[inline]
    pub fn graph(&self, name: &str, version: &str) -> Result<Option<&Arc<Graph>>, InferError> {
        match self.config.graph.as_ref().filter(|graph| graph.name == name) {
            None => Ok(None),
            Some(graph) => self.graph_of_version(graph, version),
        }
    }

    #[cold]
    fn graph_of_version<'g>(&self, graph: &'g Arc<Graph>, version: &str) -> Result<Option<&'g Arc<Graph>>, InferError> {
        // A model of the name that loads, or could not be loaded, has it all the same.
        if !self.lookup_predictor(&graph.name, "").is_err_and(|error| error.code == Code::NotFound) {
            return Ok(None);
        }
        let number = if version.is_empty() { GRAPH_VERSION } else { version_number(version)? };
        if number != GRAPH_VERSION {
            let text = format!("Request for unknown model: '{}' version {number} is not found", graph.name);
            return Err(InferError::new(Code::NotFound, text));
        }
        Ok(Some(graph))
    }

    /// The graph of a name with its models; none where the name is not the graph's.
    ///
    /// # Errors
    ///
    /// As for `graph` and `with_models`.
    #[inline]
    pub fn tensor_graph(&self, name: &str, version: &str) -> Result<Option<TensorGraph>, InferError> {
        self.graph(name, version)?.map(|graph| self.with_models(graph)).transpose()
    }

    /// The graph with the models of its steps.
    ///
    /// # Errors
    ///
    /// `Unsupported` where a step calls a service elsewhere, and the error of a model that does not serve.
    #[cold]
    pub fn with_models(&self, graph: &Arc<Graph>) -> Result<TensorGraph, InferError> {
        let model = |destination: &Destination| match destination {
            Destination::Model(model) => self.lookup(model, ""),
            Destination::Url(url) => self.model_of(destination).ok_or_else(|| {
                let text = format!(
                    "graph '{}' calls {}, which is no model of this server, so it takes no tensors: send JSON \
                     over HTTP",
                    graph.name, url.text
                );
                InferError::new(Code::Unsupported, text)
            }),
        };
        let models = graph.services().iter().map(model).collect::<Result<Vec<_>, _>>()?;
        Ok(TensorGraph { graph: Arc::clone(graph), models })
    }

    /// The models of this server that the steps of a graph call, each once, by name.
    pub(crate) fn models_of(&self, graph: &Graph) -> Vec<Arc<ModelVersion>> {
        let mut models: Vec<Arc<ModelVersion>> = Vec::new();
        for model in graph.services().iter().filter_map(|destination| self.model_of(destination)) {
            if models.iter().all(|known| !Arc::ptr_eq(known, &model)) {
                models.push(model);
            }
        }
        models.sort_by(|one, other| one.name.cmp(&other.name));
        models
    }

    /// The model of this server that a step calls; none where it serves none of the name, or the step is another's.
    pub(super) fn model_of(&self, destination: &Destination) -> Option<Arc<ModelVersion>> {
        match destination {
            Destination::Model(model) => self.lookup(model, "").ok(),
            Destination::Url(url) if url.may_be_local() => self.lookup(url.service_name(), "").ok(),
            Destination::Url(_) => None,
        }
    }
}
