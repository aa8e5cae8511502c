//! The data plane: network, HTTP and gRPC, the service behind them, the registry, the executor, statistics and metrics.

pub mod build;
pub mod compose;
pub mod driver_ensemble;
pub mod driver_native;
pub mod driver_streaming;
pub mod driver_worker;
pub mod grpc;
pub mod http;
pub mod net;
pub mod request;
pub mod runtime;
pub mod server;
pub mod service;

// The old paths, until their users name the crates.
pub use alipes_shared_memory as regions;
pub use alipes_spec as spec;
pub use alipes_spec::forwarding;
use alipes_stats::priority;
pub use alipes_stats::{self as books, events};
pub use driver_streaming as streaming;
pub use driver_worker as workers;
pub use request::{budget, inflight};
pub use runtime::model::ModelVersion;
pub use runtime::{cache, context, control, executor, limiter, model, reactors, registry, sequences};

/// Log settings, and those in force.
pub mod log {
    pub use alipes_spec::log::*;
    pub use alipes_stats::Log;
}

/// Trace settings, those in force, contexts and guards.
pub mod trace {
    pub use alipes_spec::trace as settings;
    pub use alipes_stats::trace::{context, sent, underway};
    pub use alipes_trace_export::Traces;
}

pub use server::Server;
pub use service::Service;
