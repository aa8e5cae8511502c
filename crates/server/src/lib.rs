//! The data plane: network, HTTP and gRPC, the service behind them, the registry, the executor, statistics and metrics.

pub mod books;
pub mod budget;
pub mod build;
pub mod cache;
pub mod compose;
pub mod context;
pub mod control;
pub mod driver_native;
pub mod ensemble;
pub mod events;
pub mod executor;
pub mod grpc;
pub mod http;
pub mod inflight;
pub mod limiter;
pub mod model;
pub mod net;
mod priority;
pub mod reactors;
pub mod registry;
pub mod sequences;
pub mod server;
pub mod service;
pub mod streaming;
pub mod trace;
pub mod wire;
pub mod workers;

// The old paths, until their users name the crates.
pub use alipes_shared_memory as regions;
pub use alipes_spec as spec;
pub use alipes_spec::{forwarding, log};
pub use model::ModelVersion;
pub use server::Server;
/// The former path of [`service`], for the modules beneath that still name the service.
use service as handlers;
pub use service::Service;
