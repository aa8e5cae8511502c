//! A memory file and its mapping.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{NonNull, null_mut};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// Smallest unit of memory that the system takes back.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// A memory file whose size is sealed could otherwise be cut under its readers, who would die of it (`SIGBUS`).
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

/// A mapped memory file: sparse, of one size for ever.
#[derive(Debug)]
pub struct SharedMemory {
    base: NonNull<u8>,
    len: usize,
    /// The file, on the side that made it. The other side is a model's process, where code of others may close
    /// descriptors and get their numbers for files of its own, so that none is kept there.
    fd: Option<OwnedFd>,
}

// SAFETY: the mapping belongs to no thread; who may read and write where is settled by those who hand out its parts.
unsafe impl Send for SharedMemory {}
// SAFETY: as above; the structure itself never changes.
unsafe impl Sync for SharedMemory {}

/// Structures that may lie in shared memory.
///
/// # Safety
///
/// The structure consists of atomics and padding only, so that any bytes are a value of it and any process may write it
/// at any time.
pub(crate) unsafe trait Shared {}

impl SharedMemory {
    /// A new file of this size; it costs addresses, and memory only where it is written.
    pub(crate) fn create(name: &CStr, len: u64) -> io::Result<SharedMemory> {
        let fd = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&fd, len)?;
        fcntl_add_seals(&fd, SEALS | SealFlags::SEAL)?;
        let mut memory = SharedMemory::map(&fd, len)?;
        memory.fd = Some(fd);
        Ok(memory)
    }

    /// A file that another process made. The descriptor is closed.
    pub(crate) fn open(fd: OwnedFd) -> io::Result<SharedMemory> {
        let seals = fcntl_get_seals(&fd)?;
        if !seals.contains(SEALS) {
            let text = format!("the memory file has the seals {seals:?}, expected at least {SEALS:?}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let len = rustix::fs::fstat(&fd)?.st_size as u64;
        SharedMemory::map(&fd, len)
    }

    fn map(fd: &OwnedFd, len: u64) -> io::Result<SharedMemory> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the system's choice touches nobody else's memory.
        let base = unsafe { mmap(null_mut(), len, protection, MapFlags::SHARED | MapFlags::NORESERVE, fd, 0) }?;
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(SharedMemory { base, len, fd: None })
    }

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
        let offset = usize::try_from(offset).ok()?;
        if offset.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: the sum lies within the mapping, by the line above.
        Some(unsafe { self.base.add(offset) })
    }

    /// The offset of `len` bytes at an address, if they lie in the mapping.
    pub fn offset_of(&self, address: *const u8, len: usize) -> Option<u64> {
        let offset = address.addr().checked_sub(self.base.addr().get())?;
        (offset.checked_add(len)? <= self.len).then_some(offset as u64)
    }

    /// The file.
    ///
    /// # Panics
    ///
    /// On the side that did not make it.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("asked of the side that made the file").as_fd()
    }

    /// A structure at an offset that the layout of the link knows.
    ///
    /// # Panics
    ///
    /// If it is not in the mapping, or not aligned: offsets come from [`crate::layout`], never from the other side.
    pub(crate) fn shared<T: Shared>(&self, offset: u64) -> &T {
        let address = self.at(offset, size_of::<T>()).expect("the layout lies in the mapping").cast::<T>();
        assert!(address.is_aligned(), "the layout aligns what it places");
        // SAFETY: in the mapping and aligned; `Shared` promises that all bytes are valid and shared writes allowed.
        unsafe { address.as_ref() }
    }

    /// Gives whole pages within a range back to the system; they read as zeroes from then on.
    pub(crate) fn punch(&self, offset: u64, len: u64) {
        let begin = offset.next_multiple_of(PAGE_BYTES);
        let end = (offset + len) / PAGE_BYTES * PAGE_BYTES;
        if begin < end {
            let Some(address) = self.at(begin, (end - begin) as usize) else { return };
            // By address rather than by descriptor, which this side may not have. A system that refuses keeps the
            // pages, which is no worse than not to have asked.
            // SAFETY: whole pages of this mapping, which the allocator of the file has taken back.
            let _ = unsafe { madvise(address.as_ptr().cast(), (end - begin) as usize, Advice::LinuxRemove) };
        }
    }

    /// Bytes of memory that the file occupies now.
    #[cfg(test)]
    pub(crate) fn resident_bytes(&self) -> u64 {
        rustix::fs::fstat(self.fd()).unwrap().st_blocks as u64 * 512
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and everyone who points into it holds this structure alive.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// A memory file with this content that nobody can change any more: how a worker gets its set-up.
///
/// # Errors
///
/// The system has no descriptor or memory left.
pub fn sealed_file(name: &CStr, content: &[u8]) -> io::Result<OwnedFd> {
    let fd = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut written = 0;
    while written < content.len() {
        // At an explicit offset, so that a reader finds the position at the beginning.
        written += rustix::io::pwrite(&fd, &content[written..], written as u64)?;
    }
    fcntl_add_seals(&fd, SEALS | SealFlags::WRITE | SealFlags::SEAL)?;
    Ok(fd)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_range_outside_of_the_mapping_has_no_address() {
        let memory = SharedMemory::create(c"test", 8192).unwrap();
        assert!(memory.at(8191, 1).is_some());
        assert!(memory.at(8191, 2).is_none());
        assert!(memory.at(u64::MAX, 2).is_none());
        assert_eq!(memory.offset_of(memory.at(100, 5).unwrap().as_ptr(), 5), Some(100));
        assert_eq!(memory.offset_of([0u8; 4].as_ptr(), 4), None);
    }

    #[test]
    fn a_file_that_could_shrink_is_refused() {
        let fd = memfd_create(c"test", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&fd, 4096).unwrap();
        let refusal = SharedMemory::open(fd).unwrap_err();
        assert!(refusal.to_string().contains("seals"), "{refusal}");
    }

    #[test]
    fn the_size_of_a_memory_file_is_final() {
        let memory = SharedMemory::create(c"test", 8192).unwrap();
        assert!(rustix::fs::ftruncate(memory.fd(), 0).is_err());
        assert!(rustix::fs::ftruncate(memory.fd(), 1 << 20).is_err());
    }

    #[test]
    fn a_punched_range_costs_no_memory() {
        let memory = SharedMemory::create(c"test", 1 << 20).unwrap();
        // SAFETY: the mapping is that long, and nobody else has it.
        unsafe { memory.base().as_ptr().write_bytes(1, 1 << 20) };
        assert_eq!(memory.resident_bytes(), 1 << 20);
        memory.punch(100, (1 << 20) - 100);
        assert_eq!(memory.resident_bytes(), PAGE_BYTES);
    }

    #[test]
    fn a_sealed_file_is_read_from_its_beginning_and_never_written() {
        let mut file = File::from(sealed_file(c"test", b"{}").unwrap());
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "{}");
        assert!(file.write_all(b"x").is_err());
    }
}
