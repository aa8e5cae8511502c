//! Asking servers: gRPC and HTTP from a client's side.
//!
//! A *call* is one request and its answer. A blocking call drives the socket itself, on a connection that no other call
//! uses meanwhile ([`pool`]); an awaited call runs on the runtime of the process ([`async_pool`]). So does a *stream*:
//! it never blocks its sender, and wakes its receiver once for all responses that are there. This crate knows no
//! interpreter: arrays and exceptions are made by the binding.

pub mod address;
mod aligned;
pub mod async_pool;
pub mod connection;
pub mod driver;
pub mod error;
pub mod exchange;
pub mod grpc;
pub mod http;
pub mod mailbox;
pub mod message;
pub mod pool;
pub mod runtime;
#[cfg(test)]
mod scripted;
mod sequence;
pub mod socket;
pub mod target;
pub mod waiting;

pub use error::{ClientError, Kind};
pub use grpc::outbox::Put;
pub use grpc::stream::{Stream, StreamStatus};
pub use message::{Incoming, Outgoing, Received, Verb};
pub use socket::security::Security;
pub use target::{Compression, Target, Wire};
