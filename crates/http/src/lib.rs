//! HTTP: hyper's connections, HTTP/1 and HTTP/2, served directly, and the metrics listener.

#![forbid(unsafe_code)]

mod body;
mod broken_off;
mod call;
mod call_answer;
mod call_body;
mod call_form;
mod call_headers;
mod call_stream;
mod called;
mod caller;
mod cloud_event;
mod compression;
mod connection;
mod control;
mod cors;
mod dispatch;
mod error_body;
mod events;
mod generate;
mod graph;
mod head;
mod hint;
mod hints;
mod infer;
mod logging;
mod metrics;
mod page;
mod predict;
mod predictors;
mod repeated;
mod response;
mod route;
mod sequences;
mod shared_memory;
mod site;
mod statistics;
mod tracing;
mod traffic;
mod written_page;

pub use connection::{HttpProtocol, serve_connection};
pub use metrics::MetricsProtocol;
