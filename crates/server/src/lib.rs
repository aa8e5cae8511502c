//! The composition of a server: which listeners, protocols and drivers there are, and their start, drain and stop.

#![forbid(unsafe_code)]

pub mod compose;
pub mod server;

pub use alipes_driver_worker::waiting;
pub use server::{InheritedSockets, Server};
