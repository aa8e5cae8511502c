//! gRPC from a client's side: calls over HTTP/2, framed as the server's endpoint frames them.

#[cfg(test)]
mod abrupt_server;
mod call;
pub mod connect;
mod inbox;
pub mod local_stream;
pub(crate) mod messages;
pub mod outbox;
mod reader;
pub mod status;
pub mod stream;
pub mod unary;
pub mod unary_connection;
mod writer;
