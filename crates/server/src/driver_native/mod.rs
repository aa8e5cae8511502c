//! Models that run in this process: an engine for each instance.

pub mod execute;
pub mod slots;
