//! The integration tests of this crate, as one program: it links once.

#![allow(clippy::disallowed_methods, reason = "tests may wait and read files")]

mod common;

mod abandoned;
mod link;
mod process;
mod soak;
