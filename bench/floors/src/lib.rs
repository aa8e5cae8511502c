//! What both floors share: their options, and network threads laid out as in alipes, so that a ratio to a floor
//! measures the work between the sockets and nothing else.

pub mod options;
pub mod shards;

/// The allocator that alipes uses too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
