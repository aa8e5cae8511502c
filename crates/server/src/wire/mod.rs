//! The doors: sockets, HTTP, gRPC. Everything that knows hyper lives here, and nothing here decides
//! anything that another door would also have to decide.

mod aligned;
mod beside;
pub mod bind;
mod capacity;
pub mod connection;
pub mod door;
pub mod grpc;
pub mod http;
mod http2;
pub mod listener;
pub mod network;
pub mod post;
mod restricted;
pub mod tls;
