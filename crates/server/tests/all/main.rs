//! The integration tests of this crate, as one program: it links once.

mod common;

mod calls;
#[cfg(debug_assertions)]
mod copies;
mod ensemble;
mod ensemble_runs;
mod executor;
mod fused;
mod grpc;
mod handover;
mod limiter;
mod queue_policy;
mod registry;
mod sequence_states;
mod stream;
mod streaming;
