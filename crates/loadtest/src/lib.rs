//! Sends prepared requests to a server and measures its answers.
//!
//! In a *closed loop* each of so many callers sends its next request when its last one was answered: a server that
//! stalls is asked less, so what the callers would have waited is missing from their latencies. In an *open loop* a
//! schedule says when each request is due, whatever the server does, and its latency counts from that moment. In
//! *waves* each request is sent once, beside those that are under way, and further ones begin when those of the last
//! wave have had a number of responses.
//!
//! [`engine::Engine`] runs a [`plan::Plan`] on threads of its own until it is stopped; [`engine::Engine::cut`] takes
//! what was measured since the last cut, so that who measures decides what a window is.

mod answers;
pub mod arrivals;
mod caller;
mod chains;
mod compress;
pub mod engine;
mod limit;
mod line;
pub mod log;
mod mix;
pub mod plan;
mod prepared;
mod queue;
pub mod record;
pub mod samples;
mod spans;
pub mod streamed;
mod thread;
mod timer;
mod waves;
mod worker;

pub use chains::{Ids, Sequences};
pub use engine::Engine;
pub use log::Log;
pub use plan::{Loop, Plan, Source, Waves};
pub use prepared::{Prepared, Unnumbered};
pub use record::{Keep, Record};
pub use samples::Sample;
