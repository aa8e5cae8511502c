//! What the floors share: their options, and network threads laid out as in alipes, so that a ratio to a floor
//! measures the work between the sockets and nothing else.

pub mod flights;
pub mod options;
pub mod responses;
pub mod shards;

/// Messages, service and client of the inference protocol.
#[allow(missing_docs, clippy::all, reason = "generated")]
pub mod inference {
    tonic::include_proto!("inference");
}

/// The allocator that alipes uses too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
