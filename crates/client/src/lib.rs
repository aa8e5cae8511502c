//! Asking servers: gRPC and HTTP from a client's side.
//!
//! A *call* is one request and its answer. Who waits for it drives the socket itself, on a connection that nobody else uses
//! meanwhile ([`pool`]); who awaits it leaves that to the runtime ([`async_pool`]). A *stream* lives on the one runtime of the process, which begins with the first of them; it never blocks who sends, and
//! who receives is woken once for all that has come. This crate knows no interpreter: arrays and exceptions are made by
//! the binding.

pub mod address;
mod aligned;
pub mod async_pool;
pub mod connection;
pub mod error;
pub mod exchange;
pub mod grpc;
pub mod http;
pub mod mailbox;
pub mod pool;
pub mod runtime;
pub mod socket;
pub mod target;
pub mod waiting;

pub use error::{ClientError, Kind};
pub use exchange::{Incoming, Outgoing, Verb};
pub use grpc::outbox::Put;
pub use grpc::stream::{Stream, StreamStatus};
pub use socket::security::Security;
pub use target::{Target, Wire};
