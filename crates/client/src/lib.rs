//! Asking servers: gRPC and HTTP from a client's side.
//!
//! A *stream* lives on the one runtime of the process, which begins with the first of them; it never blocks who sends, and
//! who receives is woken once for all that has come. This crate knows no interpreter: arrays and exceptions are made by
//! the binding.

pub mod error;
pub mod grpc;
pub mod runtime;

pub use error::{ClientError, Kind};
pub use grpc::outbox::Put;
pub use grpc::stream::{Stream, StreamStatus};
