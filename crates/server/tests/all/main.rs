//! The integration tests of this crate, as one program: it links once.

#![allow(clippy::disallowed_methods, reason = "tests may wait and read files")]

mod common;
#[cfg(debug_assertions)]
mod memory;

mod calls;
#[cfg(debug_assertions)]
mod copies;
#[cfg(debug_assertions)]
mod drain;
mod ensemble;
mod ensemble_runs;
mod executor;
mod fused;
#[cfg(debug_assertions)]
mod fuzz;
mod grpc;
#[cfg(debug_assertions)]
mod http1_timeouts;
#[cfg(debug_assertions)]
mod http2_floods;
#[cfg(debug_assertions)]
mod http2_timeouts;
mod limiter;
mod queue_policy;
mod registry;
#[cfg(debug_assertions)]
mod request_path;
mod stream;
mod streaming;
