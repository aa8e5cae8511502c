//! Doors and books: HTTP and gRPC, the handlers behind them, the registry, the executor, statistics and metrics.

pub mod books;
pub mod budget;
pub mod build;
pub mod cache;
pub mod control;
pub mod ensemble;
pub mod events;
pub mod executor;
pub mod forwarding;
pub mod handlers;
pub mod inflight;
pub mod limiter;
pub mod log;
pub mod model;
mod priority;
pub mod reactors;
pub mod regions;
pub mod registry;
pub mod sequences;
pub mod server;
pub mod spec;
pub mod streaming;
pub mod trace;
pub mod wire;
pub mod workers;

pub use handlers::Service;
pub use model::ModelVersion;
pub use server::Server;
