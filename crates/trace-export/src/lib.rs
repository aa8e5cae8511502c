//! Traces of requests: sampling, Triton's trace file, and OTLP over HTTP.
//!
//! Knows the trace settings (`alipes-spec`), events, clocks and trace contexts (`alipes-stats`), and client TLS
//! (`alipes-tls`); nothing of models, queues or the server's connections.
//!
//! - `traces`: the settings in force for each model, which the handlers read and change.
//! - `live`: settings while they are in force: they sample requests and number their records.
//! - `writer`: the thread that writes records, so that no request waits for a file or a collector.
//! - `file`: records in the form of Triton's trace file.
//! - `otlp`: records as spans, for an OpenTelemetry collector; `post` sends them.

#![forbid(unsafe_code)]

mod connector;
mod file;
mod live;
mod otlp;
mod post;
mod traces;
mod writer;

pub use traces::Traces;
