//! Shared memory of clients: the regions that they register, and the inputs and outputs of requests in them.
//!
//! Knows tensors and errors (`alipes-protocol`), the kernel and GPUs' drivers (`alipes-cuda`); nothing of models,
//! connections or queues.
//!
//! A region is part of a POSIX shared-memory object that its client created and that the server maps once, when the
//! client registers it. From then on the client can harm readers in three ways:
//!
//! * It shrinks the object, and the next access is a bus error: `fault` maps zeroes there, and the requests that use
//!   the region fail.
//! * It changes bytes between a check and their use: `request` copies what an engine relies on.
//! * It unlinks the object, or unregisters the region: the mapping stays until the last request has ended.
//!
//! Or a region is memory that its client allocated on a GPU, and that the server opens by its handle. Nothing of it is
//! used in place: inputs are copied to the host when a request is decoded, outputs to the GPU when it is answered. Both
//! may wait for the GPU, so neither happens on a network thread ([`Regions::may_wait`], [`Held::may_wait`]).

mod fault;
mod mapping;
mod memory;
mod messages;
mod region;
mod regions;
mod request;
#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests read and remove files")]
mod tests;

pub use alipes_cuda::HANDLE_BYTES;
pub use region::{Location, MemoryKind, RegionStatus};
pub use regions::Regions;
pub use request::{Finder, Held, Room};
