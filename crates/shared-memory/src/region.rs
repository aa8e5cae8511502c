//! One region: its registration, its memory, and the number of its leases.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::memory::Memory;

/// The two kinds of memory, which are registered, shown and unregistered apart. A name belongs to one region of either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// A shared-memory object of the system.
    System,
    /// Memory of a GPU.
    Cuda,
}

/// Where the memory of a region is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// In a shared-memory object.
    Object {
        /// Name of the object.
        key: String,
        /// Offset in the object, in bytes.
        offset: u64,
    },
    /// On a GPU.
    Device {
        /// Its number.
        id: u64,
    },
}

/// A region as its client registered it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionStatus {
    /// Name in requests.
    pub name: String,
    /// Where it is.
    pub location: Location,
    /// Length in bytes.
    pub byte_size: u64,
}

impl RegionStatus {
    /// The kind of its memory.
    pub fn kind(&self) -> MemoryKind {
        match self.location {
            Location::Object { .. } => MemoryKind::System,
            Location::Device { .. } => MemoryKind::Cuda,
        }
    }
}

/// A region whose memory is open in this process.
pub(crate) struct Region {
    pub status: RegionStatus,
    pub memory: Memory,
    /// Number of leases. New ones begin only under the registry's lock.
    pub uses: AtomicUsize,
    /// It was unregistered while in use.
    pub leaving: AtomicBool,
}

impl Region {
    pub fn new(status: RegionStatus, memory: Memory) -> Region {
        Region { status, memory, uses: AtomicUsize::new(0), leaving: AtomicBool::new(false) }
    }

    pub fn is_unused(&self) -> bool {
        self.uses.load(Ordering::SeqCst) == 0
    }

    /// Marks the region as unregistered; true where it stays because it is in use.
    pub fn leave(&self) -> bool {
        self.leaving.store(true, Ordering::SeqCst);
        !self.is_unused()
    }
}
