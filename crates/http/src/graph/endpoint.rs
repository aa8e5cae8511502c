//! The graph of a server, and which requests are its own.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alipes_graph::Graph;
use alipes_protocol::{Code, InferError};
use alipes_service::Service;
use hyper::HeaderMap;

use super::local::LocalPath;
use super::remote::Remote;
use crate::page;
use crate::route::Route;

/// The graph of a server, and what calls its steps.
pub struct GraphEndpoint {
    pub(super) graph: Arc<Graph>,
    /// What the path of each service means where this server has its model.
    pub(super) local_paths: Vec<LocalPath>,
    pub(super) remote: Remote,
    random: RandomState,
    drawn: AtomicU64,
}

impl GraphEndpoint {
    /// An endpoint without connections.
    pub fn new(graph: &Arc<Graph>) -> GraphEndpoint {
        GraphEndpoint {
            local_paths: graph.services().iter().map(LocalPath::of).collect(),
            remote: Remote::new(graph),
            random: RandomState::new(),
            drawn: AtomicU64::new(0),
            graph: Arc::clone(graph),
        }
    }

    /// Whether a request is the graph's: nothing else of this server is at its path.
    pub fn takes(&self, service: &Service, route: &Route<'_>, headers: &HeaderMap) -> bool {
        match route {
            Route::Unknown => true,
            Route::Endpoint { model } => service.registry.endpoint(model).is_none(),
            Route::Page => !page::is_wanted(headers),
            Route::Infer { model, version }
            | Route::Predict { model, version }
            | Route::ExplainPrediction { model, version }
            | Route::NotPredict { model, version, .. }
            | Route::Generate { model, version, .. } => {
                service.lookup_predictor(model, version).is_err_and(is_no_model)
            }
            _ => false,
        }
    }

    /// A number from 0 to 99.
    pub(super) fn percent(&self) -> u32 {
        let number = self.drawn.fetch_add(1, Ordering::Relaxed);
        let drawn = self.random.hash_one(number) % 100;
        u32::try_from(drawn).unwrap_or_default()
    }
}

/// One that loads, or could not be loaded, is a model of this server all the same.
fn is_no_model(error: InferError) -> bool {
    error.code == Code::NotFound
}
