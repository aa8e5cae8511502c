//! Load tests from Python: requests are prepared once, then sent without the interpreter. The work is
//! `alipes_loadtest`'s.

pub mod engine;
pub mod record;
pub mod requests;
