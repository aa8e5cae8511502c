//! A memory file and its mapping.

use std::ffi::CStr;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;

/// A mapped memory file: sparse, of one size for ever.
#[derive(Debug)]
pub struct SharedMemory {
    base: NonNull<u8>,
    len: usize,
    fd: OwnedFd,
}

// SAFETY: the mapping belongs to no thread; who may read and write where is settled by those who hand out its parts.
unsafe impl Send for SharedMemory {}
// SAFETY: as above; the structure itself never changes.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Where the mapping begins.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of `len` bytes at an offset, if they lie in the mapping.
    pub fn at(&self, offset: u64, len: usize) -> Option<NonNull<u8>> {
        let _ = (offset, len);
        todo!()
    }

    /// The offset of `len` bytes at an address, if they lie in the mapping.
    pub fn offset_of(&self, address: *const u8, len: usize) -> Option<u64> {
        let _ = (address, len);
        todo!()
    }

    /// The file.
    pub fn fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.fd.as_fd()
    }
}

/// A memory file with this content that nobody can change any more: how a worker gets its set-up.
///
/// # Errors
///
/// The system has no descriptor or memory left.
pub fn sealed_file(name: &CStr, content: &[u8]) -> io::Result<OwnedFd> {
    let _ = (name, content);
    todo!()
}
