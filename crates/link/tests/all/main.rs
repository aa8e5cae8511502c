//! The integration tests of this crate, as one program: it links once.

mod common;

mod link;
mod process;
mod soak;
