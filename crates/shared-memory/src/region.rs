//! One region: what was registered, its memory, and who uses it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::mapping::Mapping;

/// What a client registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionStatus {
    /// The name that requests use.
    pub name: String,
    /// The name of the shared-memory object.
    pub key: String,
    /// Where in the object the region begins, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub byte_size: u64,
}

/// A region that is mapped.
pub(crate) struct Region {
    pub status: RegionStatus,
    pub memory: Mapping,
    /// Leases that are out. They are given only while the lock of all regions is held.
    pub uses: AtomicUsize,
    /// It was unregistered while it was in use.
    pub leaving: AtomicBool,
}

impl Region {
    pub fn new(status: RegionStatus, memory: Mapping) -> Region {
        Region { status, memory, uses: AtomicUsize::new(0), leaving: AtomicBool::new(false) }
    }

    pub fn is_unused(&self) -> bool {
        self.uses.load(Ordering::SeqCst) == 0
    }

    /// Marks the region as one that is to go; true where it has to stay, because it is in use.
    pub fn leave(&self) -> bool {
        self.leaving.store(true, Ordering::SeqCst);
        !self.is_unused()
    }
}
