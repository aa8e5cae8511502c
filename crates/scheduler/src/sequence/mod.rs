//! Sequences: requests that share state, and therefore an instance, a slot and an order.
//!
//! A sequence begins with a request that says so, keeps a *slot* of one instance until it ends, falls silent for too
//! long or is given up, and has one request at a time executed. What begins while no slot is free waits in the
//! *backlog*, whole, until one is.
//!
//! - [`SequencePolicy`] is how a model wants it.
//! - [`SequenceQueue`] joins slots, backlog and instances for one version of a model, in the place of a
//!   [`ModelQueue`](crate::ModelQueue), whose instances are all alike.
//! - `table` knows every sequence, `free_slots` the free slots, `backlog` the sequences that wait for
//!   one, `lineup` the next requests of an instance.

mod backlog;
mod free_slots;
mod instance;
mod lineup;
mod policy;
mod queue;
mod table;

pub use policy::{SequencePolicy, StartThreshold, Strategy};
pub use queue::SequenceQueue;
