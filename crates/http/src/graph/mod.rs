//! Requests of the server's graph: any path that is nothing else's, as KServe's router has it.
//!
//! `alipes-graph` decides which step is called next. A step whose model this server has is called here, without a
//! socket, by the functions that answer its requests over HTTP; any other step is called over HTTP.

mod answer;
mod calls;
mod fault;
mod idle;
mod local;
mod remote;
mod retries;
mod tensors;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alipes_graph::Graph;
use alipes_service::Service;
use hyper::HeaderMap;

pub use self::answer::{answer, ready};
use self::local::LocalPath;
use self::remote::Remote;
use super::page;
use super::route::Route;

/// Where KServe asks its router whether it is ready.
pub const READY_PATH: &str = "/readyz";

/// The graph of a server, and what calls its steps.
pub struct GraphEndpoint {
    graph: Arc<Graph>,
    /// What the path of each service means where this server has its model.
    local_paths: Vec<LocalPath>,
    remote: Remote,
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
    fn percent(&self) -> u32 {
        let number = self.drawn.fetch_add(1, Ordering::Relaxed);
        let drawn = self.random.hash_one(number) % 100;
        u32::try_from(drawn).unwrap_or_default()
    }
}

/// One that loads, or could not be loaded, is a model of this server all the same.
fn is_no_model(error: alipes_protocol::InferError) -> bool {
    error.code == alipes_protocol::Code::NotFound
}
