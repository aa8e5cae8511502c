//! A model that tunes itself: which queue delay, which batch size and how many instances keep its objective.
//!
//! The objective is a time that 99 of 100 requests are answered within. As long as it is not kept, the tuner looks for
//! a remedy; where it is kept with time to spare, it spends some of that on company, since larger batches take less
//! computing. It knows no model of the engine: it changes one thing, watches what that brings, and takes back what did
//! not help. What failed is left alone for a while that doubles with each failure, so that in steady traffic the
//! changes die out.
//!
//! Like everything here it has no clock and no thread: it is fed with one [`Observation`] a period, and answers with
//! the [`Setting`] to be applied, if any.
//!
//! - [`Objective`] and [`Bounds`]: what is wanted, and within which limits.
//! - [`Observation`]: what one period showed.
//! - `verdict`: periods added up until there is enough to judge, and how two such measurements compare.
//! - `moves`: which changes could help, the likeliest first.
//! - `backoff`: which changes have failed, and how long they are left alone.
//! - [`Tuner`] decides; [`Change`] is what it remembers of each decision.

mod backoff;
mod change;
mod moves;
mod observation;
mod setting;
mod tuner;
mod verdict;

pub use change::{Change, Outcome};
pub use moves::Cause;
pub use observation::{LATENCY_BUCKETS, Observation};
pub use setting::{Bounds, Objective, Setting};
pub use tuner::Tuner;
pub use verdict::Figures;
