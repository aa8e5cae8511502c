//! Requests of the server's graph: any path that is nothing else's, as KServe's router has it.
//!
//! `alipes-graph` decides which step is called next. A step whose model this server has is called here, without a
//! socket, by the functions that answer its requests over HTTP; any other step is called over HTTP.

mod answer;
mod calls;
mod connect;
mod endpoint;
mod fault;
mod generate;
mod idle;
mod local;
mod remote;
mod retries;
mod tensors;

pub use self::answer::{answer, ready};
pub use self::endpoint::GraphEndpoint;

/// Where KServe asks its router whether it is ready.
pub const READY_PATH: &str = "/readyz";
