//! Requests that are executed together: their inputs gathered, their outputs split.

mod aligned;
mod gather;
mod layout;
mod split;

pub use gather::{Gather, Member, Views};
pub use layout::{Layout, MadeInput, MadeKind};
pub use split::Split;
