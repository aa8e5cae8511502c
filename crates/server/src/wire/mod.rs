//! The doors: sockets, HTTP, gRPC. Everything that knows hyper lives here, and nothing here decides
//! anything that another door would also have to decide.

mod aligned;
pub mod bind;
pub mod grpc;
pub mod http;
pub mod network;
