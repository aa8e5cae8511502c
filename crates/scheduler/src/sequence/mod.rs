//! Sequences: requests that share state, and therefore an instance, a slot and an order.
//!
//! A sequence begins with a request that says so, keeps a *slot* of one instance until it ends, falls silent for too long
//! or is given up, and has one request at a time executed. What begins while no slot is free waits in the *backlog*,
//! whole, until one is.
//!
//! - [`SequencePolicy`] is how a model wants it.
//! - [`SequenceQueue`] joins slots, backlog and instances for one version of a model, in the place of a
//!   [`ModelQueue`](crate::ModelQueue), whose instances are all alike.
//! - `table` knows every sequence, `seats` the free slots, `backlog` who waits for one, `lineup` who is next on an
//!   instance.

mod backlog;
mod desk;
mod lineup;
mod policy;
mod queue;
mod seats;
mod table;

pub use policy::{Hold, SequencePolicy, Strategy};
pub use queue::SequenceQueue;
