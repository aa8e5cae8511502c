//! Requests that are executed together: their inputs gathered, their outputs split.

mod aligned;
mod gather;
mod split;

pub use gather::{Gather, Member, Views};
pub use split::Split;
