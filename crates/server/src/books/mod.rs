//! The books: what each model did, as statistics and as metrics.

pub mod cpu;
pub mod custom;
pub mod histogram;
pub mod metrics;
pub mod statistics;
pub mod summary;
