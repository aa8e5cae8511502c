//! The integration tests of this crate, as one program: it links once.

#![allow(clippy::disallowed_methods, reason = "tests may wait and read files")]

mod common;

mod arbiter;
mod batching;
mod direct;
mod dynamic;
mod ensemble;
mod ensemble_properties;
mod explain;
mod fairness;
mod model_queue;
mod properties;
mod queue_policy;
mod queue_policy_properties;
mod sequence_properties;
mod sequences;
mod step_order;
mod streams;
mod timelines;
mod tuned_day;
mod tuner;
