//! Who runs when, and with whom.
//!
//! Everything here is a pure state machine: no thread, no clock, no lock, no input or output. Time comes in as an
//! argument and what is to be done comes out as a value, so that each rule is tested on a clock that the test moves.
//!
//! - [`Work`] is what is scheduled: the scheduler knows its rows and its key, nothing else.
//! - [`Scheduler`] decides which waiting requests run together: [`Direct`] or [`Dynamic`].
//! - [`DynamicPolicy`] says how batches are formed, who goes first, and how long and how many may wait.
//! - [`Instances`] records which instances are idle.
//! - [`ModelQueue`] joins both for one version of a model. Its owner holds it under one short mutex and carries out
//!   the [`Effect`]s that it returns, and its [`Aftermath`], after the mutex is released.
//! - [`Why`] and [`Explanation`] explain the last decisions, and what holds the next batch.
//! - [`sequence`] is the same for requests that share state, and therefore an instance and an order. [`Queue`] is the
//!   trait of both.
//! - [`Arbiter`] decides among the instances of all models whose executions take counted resources.
//! - [`ensemble`] is the same for a request that several models answer together.
//! - [`streams`] records the live sequences of a model that keeps its own state.
//! - [`tuning`] looks for the policy that keeps a latency objective.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "queues are given the time; tests begin at any"))]

mod arbiter;
mod deadlines;
mod direct;
mod dynamic;
pub mod ensemble;
mod instances;
mod journal;
mod levels;
mod line;
mod model_queue;
mod policy;
mod queue;
mod scheduler;
pub mod sequence;
pub mod streams;
pub mod tuning;
mod why;
mod work;

pub use arbiter::{Arbiter, Demand, Impossible};
pub use direct::Direct;
pub use dynamic::Dynamic;
pub use instances::Instances;
pub use model_queue::{Aftermath, Effect, ModelQueue};
pub use policy::{Batching, DynamicPolicy, Priorities, QueuePolicy, TimeoutAction};
pub use queue::Queue;
pub use scheduler::{Next, Scheduler};
pub use why::{Decision, Explanation, Hold, Outlook, Why};
pub use work::{Membership, Reason, Refused, SequenceId, SlotId, Work};
