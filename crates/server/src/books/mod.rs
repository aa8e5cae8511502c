//! The books: what each model did, as statistics and as metrics.

pub mod cpu;
pub mod custom;
pub mod metrics;
pub mod statistics;
