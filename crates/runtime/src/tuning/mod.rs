//! Models that tune themselves: what the scheduler's tuner decides is read from a version's statistics and applied to
//! its queue.
//!
//! A request of such a model costs one relaxed addition for its latency, a request of any other nothing. Everything
//! else happens once a period, on the one thread of `watch`.
//!
//! - `reading`: what the statistics said, and what happened between two readings.
//! - [`Tuning`] decides; it is part of the version, and knows readings only.
//! - `look`: one look at a version, and what is applied to it.
//! - `watch`: the thread that looks.

mod look;
mod reading;
pub(crate) mod tuner;
mod watch;

pub use tuner::{Tuned, Tuning};
pub use watch::begin;
