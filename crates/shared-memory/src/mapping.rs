//! A mapping of a client's shared-memory object.

use std::ptr::{self, NonNull};
use std::thread;

use alipes_protocol::copies;
use alipes_protocol::limits::FREED_HERE_BYTES;
use bytes::Bytes;
use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::{param, shm};

use crate::fault::{self, Watch};

/// Why an object cannot be mapped.
#[derive(Debug)]
pub(crate) enum Unmappable {
    /// It cannot be opened.
    Missing,
    /// The key names something that is no shared-memory object.
    NoObject,
    /// It ends before the requested part does.
    TooShort,
    /// The system does not map it.
    Refused(Errno),
    /// The bus error handler cannot protect the server from it.
    Unprotected(&'static str),
}

/// A mapped part of an object. Its client may change the bytes, or shrink the object, at any time.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
    // Ends before the mapping does, see `Drop`.
    watch: Option<Watch>,
}

// SAFETY: the mapping belongs to no thread, and the functions below say themselves what they do to bytes that others
// may change meanwhile.
unsafe impl Send for Mapping {}
// SAFETY: as above; the structure itself never changes.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a part of the object with this key.
    pub fn open(key: &str, offset: u64, byte_size: u64) -> Result<Mapping, Unmappable> {
        // A link could lead out of /dev/shm, to any file that the server may write.
        let flags = shm::OFlags::RDWR | shm::OFlags::from_bits_retain(OFlags::NOFOLLOW.bits());
        let object = shm::open(key, flags, Mode::empty()).map_err(|_| Unmappable::Missing)?;
        let about = fstat(&object).map_err(|_| Unmappable::NoObject)?;
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
            return Err(Unmappable::NoObject);
        }
        let fits = offset.checked_add(byte_size).is_some_and(|end| i128::from(end) <= i128::from(about.st_size));
        let len = usize::try_from(byte_size).ok().filter(|_| fits).ok_or(Unmappable::TooShort)?;
        fault::arm().map_err(Unmappable::Unprotected)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the system's choice touches nobody else's memory.
        let base = unsafe { mmap(ptr::null_mut(), len, protection, MapFlags::SHARED, &object, offset) };
        let base = NonNull::new(base.map_err(Unmappable::Refused)?.cast()).ok_or(Unmappable::NoObject)?;
        let mut mapping = Mapping { base, len, watch: None };
        let mapped = len.next_multiple_of(param::page_size());
        mapping.watch = Watch::over(mapping.base, mapped);
        if mapping.watch.is_none() {
            return Err(Unmappable::Unprotected("no more regions can be protected from being cut off"));
        }
        Ok(mapping)
    }

    /// The length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether an access found that the memory was cut off. All bytes read or written since the mapping was made are
    /// worthless then.
    pub fn is_lost(&self) -> bool {
        self.watch.as_ref().is_none_or(Watch::is_lost)
    }

    /// The bytes of a part, in place.
    ///
    /// # Safety
    ///
    /// Another process may change the bytes at any time: the caller accepts any bytes, reads no lengths, indexes or
    /// conditions in them, and does not rely on reading the same bytes twice.
    ///
    /// # Panics
    ///
    /// If the part does not lie in the mapping: see [`Mapping::holds`].
    pub unsafe fn slice(&self, offset: usize, len: usize) -> &[u8] {
        let begin = self.at(offset, len);
        // SAFETY: within the mapping, which lives as long as this borrow. The bytes may change, which the contract
        // above leaves to the caller; where the object is cut off, `fault` maps zeroes.
        unsafe { std::slice::from_raw_parts(begin.as_ptr(), len) }
    }

    /// A copy of a part, out of the client's reach.
    pub fn copy(&self, offset: usize, len: usize) -> Bytes {
        let begin = self.at(offset, len);
        copies::note(len);
        let mut copy = Vec::with_capacity(len);
        // SAFETY: the source lies within the mapping and the destination has the capacity; they cannot overlap, since
        // the destination is new. Another process may change bytes meanwhile, and any byte is a valid `u8`.
        unsafe {
            ptr::copy_nonoverlapping(begin.as_ptr(), copy.as_mut_ptr(), len);
            copy.set_len(len);
        }
        Bytes::from(copy)
    }

    /// Writes bytes to a part.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let begin = self.at(offset, bytes.len());
        copies::note(bytes.len());
        // SAFETY: the destination lies within the mapping. No reference in this process relies on the bytes there
        // (`slice`), so this is a write like those of the other process. `copy`, since a model may return an input as
        // its output, at the same place.
        unsafe { ptr::copy(bytes.as_ptr(), begin.as_ptr(), bytes.len()) };
    }

    /// Whether a part lies in the mapping.
    pub fn holds(&self, offset: usize, len: usize) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.len)
    }

    fn at(&self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(self.holds(offset, len), "parts are checked when a request names them");
        // SAFETY: the sum lies within the mapping, by the line above.
        unsafe { self.base.add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // First the watch: another mapping may get this address as soon as it is free, and the handler must not take it
        // for this one.
        self.watch = None;
        let mapped = Mapped { base: self.base, len: self.len };
        if self.len <= FREED_HERE_BYTES {
            return drop(mapped);
        }
        // The system takes milliseconds for each hundred megabytes, and this may be a network thread. Where there is no
        // thread to be had, it is unmapped at once.
        drop(thread::Builder::new().name("alipes-unmap".into()).spawn(move || drop(mapped)));
    }
}

/// Addresses that nobody uses any more.
struct Mapped {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: addresses may be unmapped by any thread.
unsafe impl Send for Mapped {}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping was ours, and everything that points into it kept the structure alive that has just
        // ended.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}
