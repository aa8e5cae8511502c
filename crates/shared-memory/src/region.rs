//! One region: its registration, its memory, and the number of its leases.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::mapping::Mapping;

/// A region as its client registered it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionStatus {
    /// Name in requests.
    pub name: String,
    /// Name of the shared-memory object.
    pub key: String,
    /// Offset in the object, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub byte_size: u64,
}

/// A mapped region.
pub(crate) struct Region {
    pub status: RegionStatus,
    pub memory: Mapping,
    /// Number of leases. New ones begin only under the registry's lock.
    pub uses: AtomicUsize,
    /// It was unregistered while in use.
    pub leaving: AtomicBool,
}

impl Region {
    pub fn new(status: RegionStatus, memory: Mapping) -> Region {
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
