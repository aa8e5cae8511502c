//! The memory that requests and mail are written to: the server allocates, all workers of a model version see it.

use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use bytes::Bytes;
use smallvec::SmallVec;

use crate::{Mail, RequestHead, SharedMemory, TensorRef};

/// The request arena of a model version.
#[derive(Debug)]
pub struct RequestArena {
    memory: SharedMemory,
}

impl RequestArena {
    /// The reservation that a server makes for a model version: addresses, not memory.
    pub const RESERVATION_BYTES: u64 = 16 << 30;

    /// A reservation of this many bytes; none is used yet.
    ///
    /// # Errors
    ///
    /// The system has no descriptor or address space left.
    pub fn create(bytes: u64) -> io::Result<Arc<RequestArena>> {
        let _ = bytes;
        todo!()
    }

    /// The file, for the workers.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.memory.fd()
    }

    /// Memory of this size: exclusive, aligned to 64 bytes, with whatever was in it before. `None` when the reservation
    /// is exhausted.
    pub fn allocate(self: &Arc<Self>, len: usize) -> Option<ArenaBuffer> {
        let _ = len;
        todo!()
    }

    /// Where these bytes lie in the arena, if they do.
    pub fn offset_of(&self, bytes: &[u8]) -> Option<u64> {
        self.memory.offset_of(bytes.as_ptr(), bytes.len())
    }

    /// Writes a request; inputs that lie in the arena already stay where they are. `None` when the reservation is
    /// exhausted.
    pub fn write_request(self: &Arc<Self>, head: &RequestHead<'_>, inputs: &[TensorRef<'_>]) -> Option<Placed> {
        let _ = (head, inputs);
        todo!()
    }

    /// Writes an answer to a call. `None` when the reservation is exhausted.
    pub fn write_mail(self: &Arc<Self>, mail: &Mail<'_>) -> Option<Placed> {
        let _ = mail;
        todo!()
    }

    /// Gives the memory of what is free back to the system; for idle moments, since it costs as much as using it again.
    pub fn trim(&self) {
        todo!()
    }

    /// Bytes that are allocated.
    pub fn used_bytes(&self) -> usize {
        todo!()
    }
}

/// Allocated memory of a request arena; freed when dropped.
#[derive(Debug)]
pub struct ArenaBuffer {
    arena: Arc<RequestArena>,
    offset: u64,
    len: usize,
}

impl ArenaBuffer {
    /// Its offset in the arena.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The same memory, shareable from now on; freed when the last clone or slice is dropped.
    pub fn freeze(self) -> Bytes {
        todo!()
    }
}

impl Deref for ArenaBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let _ = (&self.arena, self.len);
        todo!()
    }
}

impl DerefMut for ArenaBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        todo!()
    }
}

/// A frame in the request arena, and everything it refers to, kept alive.
#[derive(Debug)]
pub struct Placed {
    /// Where it begins.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u32,
    parts: SmallVec<[(u64, Bytes); 3]>,
}

impl Placed {
    /// Bytes of the frame or of an input, by their offset in the arena; `None` where they are not of this request.
    pub fn slice(&self, offset: u64, len: usize) -> Option<Bytes> {
        let _ = (offset, len, &self.parts);
        todo!()
    }

    /// How much memory it keeps.
    pub fn bytes(&self) -> usize {
        todo!()
    }
}
