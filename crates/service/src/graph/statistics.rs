//! The graph among the models, for those who look at statistics, metrics and queues.

use std::collections::BTreeMap;
use std::sync::Arc;

use alipes_graph::Graph;
use alipes_runtime::model::ModelVersion;
use alipes_stats::metrics::{Labels, ModelRow};

use super::tensor_graph::GRAPH_VERSION;
use crate::explain::ModelExplained;
use crate::{ModelStatistics, Service};

impl Service {
    /// What the graph did so far; none where there is no graph, or a model has its name.
    pub(crate) fn graph_statistics(&self) -> Option<ModelStatistics> {
        let name = &self.config.graph.as_ref()?.name;
        self.graph(name, "").ok()??;
        let snapshot = self.graph_runs.snapshot();
        Some(ModelStatistics { name: name.clone(), version: GRAPH_VERSION, snapshot })
    }

    /// The metrics of the graph, whose requests wait at its steps alone.
    pub(crate) fn graph_row(&self) -> Option<ModelRow> {
        let ModelStatistics { name, version, snapshot } = self.graph_statistics()?;
        Some(ModelRow {
            labels: Labels::of_model(&name, version, "", &BTreeMap::new()),
            statistics: snapshot,
            waiting: 0,
            requests: self.graph_runs.running(),
            longest_wait_s: 0.0,
            cached: false,
            load_s: 0.0,
            first_responses: None,
            summaries: None,
        })
    }

    /// The graph, whose steps call these models of the server.
    pub(crate) fn explain_graph(&self, graph: &Graph, models: &[Arc<ModelVersion>]) -> ModelExplained {
        let (ready, requests) = (self.has_needed_models(graph), self.graph_runs.running());
        ModelExplained::of_graph(graph, GRAPH_VERSION, ready, requests, models)
    }
}
