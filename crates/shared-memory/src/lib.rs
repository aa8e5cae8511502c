//! Shared memory of clients: the regions that they register, and what a request uses of them.
//!
//! Knows tensors and errors (`alipes-protocol`), the kernel, and nothing of models, connections or queues.

mod fault;
mod mapping;
mod region;
mod regions;
mod request;
#[cfg(test)]
mod tests;

pub use region::RegionStatus;
pub use regions::Regions;
pub use request::{Finder, Held};
