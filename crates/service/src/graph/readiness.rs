//! Whether a graph can answer: the models of this server that its hard steps call can.

use std::collections::BTreeSet;
use std::sync::Arc;

use alipes_graph::{Destination, Graph, Target};
use alipes_protocol::{Code, InferError};
use alipes_runtime::model::ModelVersion;
use alipes_runtime::registry::IndexEntry;

use super::tensor_graph::GRAPH_VERSION;
use crate::Service;
use crate::repository::{LOADING, READY, UNAVAILABLE};

impl Service {
    /// Whether a model can answer, or the graph.
    ///
    /// # Errors
    ///
    /// As for `Context::model_ready`.
    pub async fn model_ready(&self, name: &str, version: &str) -> Result<bool, InferError> {
        match self.graph(name, version) {
            Ok(None) => self.context.model_ready(name, version).await,
            Ok(Some(graph)) => Ok(self.graph_ready(graph).await),
            // Source: Triton 2.51, for models.
            Err(error) if error.code == Code::NotFound && !self.config.triton_release.is_later() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether a graph can answer.
    pub(crate) async fn graph_ready(&self, graph: &Graph) -> bool {
        let Ok(models) = self.needed_models(graph) else { return false };
        if !models.iter().all(|model| model.is_ready()) {
            return false;
        }
        // All are asked before the first answer is waited for.
        let answers: Vec<_> = models.iter().filter_map(|model| model.ask_ready()).collect();
        for answer in answers {
            if !answer.await {
                return false;
            }
        }
        true
    }

    /// Whether the models of this server that the hard steps of a graph call are ready, as far as they say it unasked.
    pub(crate) fn has_needed_models(&self, graph: &Graph) -> bool {
        self.needed_models(graph).is_ok_and(|models| models.iter().all(|model| model.is_ready()))
    }

    /// The line of the graph in the repository index; none where there is no graph, or a model has its name.
    pub(crate) fn graph_entry(&self) -> Option<IndexEntry> {
        let graph = self.config.graph.as_ref()?;
        let graph = self.graph(&graph.name, "").ok()??;
        let absent = match self.needed_models(graph) {
            Ok(models) => models.into_iter().find(|model| !model.is_ready()).map(|model| model.name.to_string()),
            Err(name) => Some(name),
        };
        let (state, reason) = match absent {
            None => (READY, String::new()),
            Some(name) if self.is_loading(&name) => (LOADING, String::new()),
            Some(name) => (UNAVAILABLE, format!("its step calls the model '{name}', which is not ready")),
        };
        let (name, version) = (graph.name.clone(), GRAPH_VERSION.to_string());
        Some(IndexEntry { name, version, state: state.to_owned(), reason })
    }

    /// The models of this server that hard steps call.
    ///
    /// # Errors
    ///
    /// The name of one that does not serve.
    fn needed_models(&self, graph: &Graph) -> Result<Vec<Arc<ModelVersion>>, String> {
        let steps = graph.nodes().iter().flat_map(|node| &node.steps).filter(|step| step.hard);
        let services = steps.filter_map(|step| match step.target {
            Target::Service(number) => Some(number),
            Target::Node(_) => None,
        });
        let mut models = Vec::new();
        for number in services.collect::<BTreeSet<usize>>() {
            let (name, is_local) = match &graph.services()[number] {
                Destination::Model(model) => (model.as_str(), true),
                Destination::Url(url) if url.may_be_local() => (url.service_name(), false),
                Destination::Url(_) => continue,
            };
            match self.lookup_predictor(name, "") {
                Ok(model) => models.push(model),
                // A service elsewhere.
                Err(error) if error.code == Code::NotFound && !is_local => {}
                Err(_) => return Err(name.to_owned()),
            }
        }
        Ok(models)
    }

    fn is_loading(&self, name: &str) -> bool {
        self.registry.index().iter().any(|entry| entry.name == name && entry.state == LOADING)
    }
}
