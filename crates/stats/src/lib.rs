//! What happened: statistics and metrics of models, events for the log, trace contexts; and how threads and clocks are
//! set for the measurements.
//!
//! Knows tensors' errors (`alipes-protocol`), the log settings (`alipes-spec`), and nothing of models, queues or connections:
//! each part is written by its owner and read by the handlers.

pub mod clock;
pub mod cpu;
pub mod custom;
pub mod events;
pub mod histogram;
mod log;
pub mod metrics;
pub mod priority;
pub mod statistics;
pub mod summary;
pub mod trace;

pub use log::Log;
