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

pub use runtime::model::ModelVersion;
pub use server::Server;
pub use service::Service;
