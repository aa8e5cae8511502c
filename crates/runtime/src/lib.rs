//! Model versions and what runs them: queues, threads, limits, caches, sequences. Drivers lie above and register
//! themselves with the composition.
//!
//! - `model`: a version, its queue and its statistics; the trait `Driver`.
//! - `executor`: the threads that drive claimed instances.
//! - `registry`: the versions that are ready.
//! - `traffic`: how requests that name no version are divided among versions.
//! - `limiter`: executions that take counted resources.
//! - `cache`: responses that are kept for equal requests.
//! - `sequences`: the states of sequences.
//! - `tuning`: models that change how they are served until an objective is kept.
//! - `pages`: what the control plane has written for browsers.
//! - `control`: requests for the control plane.
//! - `reactors`: the event loops of the network threads.
//! - `context`: what drivers share.
//! - `cancellation`: the end of a load before its time.

#![forbid(unsafe_code)]

pub mod build;
pub mod cache;
pub mod cancellation;
pub mod context;
pub mod control;
pub mod executor;
pub mod limiter;
pub mod model;
pub mod pages;
pub mod reactors;
pub mod registry;
pub mod sequences;
pub mod similar;
pub mod traffic;
pub mod tuning;
