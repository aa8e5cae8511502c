//! Statistics and metrics of models, events for the log, trace contexts, the shared clock, thread priorities and turns
//! of network threads.
//!
//! Knows errors and trace records (`alipes-protocol`) and log settings (`alipes-spec`); nothing of models, queues or
//! connections. Each model version, worker and connection writes its own part; the handlers read all of them.

pub mod access;
pub mod clock;
pub mod comparison;
pub mod cpu;
pub mod custom;
pub mod events;
pub mod histogram;
pub mod latencies;
mod log;
pub mod metrics;
pub mod outcomes;
pub mod priority;
pub mod statistics;
pub mod summary;
pub mod trace;
pub mod turn;

pub use log::Log;
