//! The memory that requests and mail are written to: the server allocates, all workers of a model version see it.

use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::arena::{Arena, Range};
use crate::frame::{self, Writer};
use crate::mail::{Mail, MailOutcome};
use crate::memory::SharedMemory;
use crate::request::RequestHead;
use crate::tensor::TensorRef;

/// The request arena of a model version.
#[derive(Debug)]
pub struct RequestArena {
    memory: SharedMemory,
    arena: Mutex<Arena>,
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
        let memory = SharedMemory::create(c"alipes-requests", bytes)?;
        Ok(Arc::new(RequestArena { memory, arena: Mutex::new(Arena::new(bytes)) }))
    }

    /// The file, for the workers.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.memory.fd()
    }

    /// Memory of this size: exclusive, aligned to 64 bytes, with whatever was in it before. `None` when the reservation
    /// is exhausted.
    pub fn allocate(self: &Arc<Self>, len: usize) -> Option<ArenaBuffer> {
        let slot = self.slot(len as u64)?;
        let address = self.memory.at(slot.offset, len).expect("slots lie in the memory");
        Some(ArenaBuffer { arena: Arc::clone(self), slot, address, len })
    }

    fn slot(&self, len: u64) -> Option<Range> {
        let mut arena = self.arena.lock();
        if let Some(slot) = arena.allocate(len) {
            return Some(slot);
        }
        // Seldom, so the lock may be held: what lies idle in other sizes becomes one again.
        for range in arena.drain() {
            self.memory.punch(range.offset, range.len);
            arena.restore(range);
        }
        arena.allocate(len)
    }

    fn free(&self, slot: Range) {
        let surplus = self.arena.lock().free(slot);
        if let Some(range) = surplus {
            self.memory.punch(range.offset, range.len);
            self.arena.lock().restore(range);
        }
    }

    /// Where these bytes lie in the arena, if they do.
    pub fn offset_of(&self, bytes: &[u8]) -> Option<u64> {
        self.memory.offset_of(bytes.as_ptr(), bytes.len())
    }

    /// Writes a request; inputs that lie in the arena already stay where they are. `None` when the reservation is
    /// exhausted.
    pub fn write_request(self: &Arc<Self>, head: &RequestHead<'_>, inputs: &[TensorRef<'_>]) -> Option<Placed> {
        let mut writer = Writer::new();
        frame::request::write(&mut writer, head, inputs, |data| self.offset_of(data));
        self.place(&writer, inputs)
    }

    /// Writes an answer to a call. `None` when the reservation is exhausted.
    pub fn write_mail(self: &Arc<Self>, mail: &Mail<'_>) -> Option<Placed> {
        let mut writer = Writer::new();
        frame::mail::write(&mut writer, mail, |data| self.offset_of(data));
        let tensors = match mail.outcome {
            MailOutcome::Response { outputs, .. } => outputs,
            _ => &[],
        };
        self.place(&writer, tensors)
    }

    /// Copies a frame into the arena, and keeps the tensors that were there before.
    fn place(self: &Arc<Self>, writer: &Writer<'_>, tensors: &[TensorRef<'_>]) -> Option<Placed> {
        let len = u32::try_from(writer.description_len()).ok()?;
        let mut buffer = self.allocate(writer.len())?;
        writer.write_to(&mut buffer);
        let offset = buffer.offset();
        let mut parts = SmallVec::new();
        parts.push((offset, buffer.freeze()));
        parts.extend(tensors.iter().filter_map(|tensor| Some((self.offset_of(tensor.data)?, tensor.data.clone()))));
        Some(Placed { offset, len, parts })
    }

    /// Gives the memory of what is free back to the system; for idle moments, since it costs as much as using it again.
    pub fn trim(&self) {
        let ranges = self.arena.lock().drain();
        ranges.iter().for_each(|range| self.memory.punch(range.offset, range.len));
        let mut arena = self.arena.lock();
        ranges.into_iter().for_each(|range| arena.restore(range));
    }

    /// Bytes that are allocated.
    pub fn used_bytes(&self) -> usize {
        self.arena.lock().used() as usize
    }

    /// Bytes that are free and yet occupy memory: what [`RequestArena::trim`] gives back.
    pub fn idle_bytes(&self) -> usize {
        self.arena.lock().idle() as usize
    }
}

/// Allocated memory of a request arena; freed when dropped.
#[derive(Debug)]
pub struct ArenaBuffer {
    arena: Arc<RequestArena>,
    slot: Range,
    address: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory is exclusively this buffer's, like a vector's.
unsafe impl Send for ArenaBuffer {}
// SAFETY: as above.
unsafe impl Sync for ArenaBuffer {}

impl ArenaBuffer {
    /// Its offset in the arena.
    pub fn offset(&self) -> u64 {
        self.slot.offset
    }

    /// The same memory, shareable from now on; freed when the last clone or slice is dropped.
    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl Deref for ArenaBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the slot is mapped for as long as the arena lives, which is held. Nobody else in this process has the
        // slot. A worker may write to it, which changes bytes of which nobody here knows the meaning.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.len) }
    }
}

impl DerefMut for ArenaBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the buffer is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.address.as_ptr(), self.len) }
    }
}

impl AsRef<[u8]> for ArenaBuffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for ArenaBuffer {
    fn drop(&mut self) {
        self.arena.free(self.slot);
    }
}

/// A frame in the request arena, and everything it refers to, kept alive.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Where it begins.
    pub offset: u64,
    /// Length of its description in bytes.
    pub len: u32,
    /// The frame and the inputs that were in the arena before it, with their offsets.
    parts: SmallVec<[(u64, Bytes); 3]>,
}

impl Placed {
    /// Bytes of the frame or of an input, by their offset in the arena; `None` where they are not of this request.
    pub fn slice(&self, offset: u64, len: usize) -> Option<Bytes> {
        self.parts.iter().find_map(|(start, bytes)| {
            let begin = usize::try_from(offset.checked_sub(*start)?).ok()?;
            let end = begin.checked_add(len)?;
            (end <= bytes.len()).then(|| bytes.slice(begin..end))
        })
    }

    /// How much memory it keeps.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|(_, bytes)| bytes.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use alipes_protocol::{CorrelationId, Datatype};

    use super::*;
    use crate::tensor::TensorName;

    fn arena() -> Arc<RequestArena> {
        RequestArena::create(1 << 30).unwrap()
    }

    const HEAD: RequestHead<'static> = RequestHead {
        id: "",
        correlation_id: &CorrelationId::Number(0),
        flags: 0,
        timeout_us: 0,
        priority: 0,
        parameters: "",
        outputs: &[],
        trace: None,
    };

    #[test]
    fn a_buffer_is_aligned_exclusive_and_returns_when_dropped() {
        let arena = arena();
        let mut first = arena.allocate(1000).unwrap();
        let second = arena.allocate(1000).unwrap();
        assert_eq!(first.as_ptr().addr() % 64, 0);
        first.fill(7);
        assert!(second.iter().all(|&byte| byte == 0));
        let bytes = first.freeze();
        let slice = bytes.slice(10..20);
        drop((bytes, second));
        assert!(arena.used_bytes() > 0);
        assert_eq!(slice, [7; 10].as_slice());
        drop(slice);
        assert_eq!(arena.used_bytes(), 0);
    }

    #[test]
    fn an_input_in_the_arena_is_held_without_a_copy() {
        let arena = arena();
        let body = arena.allocate(100_000).unwrap().freeze();
        let (inside, outside) = (body.slice(64..100_000), Bytes::from(vec![9u8; 10]));
        let tensor = |data| TensorRef { name: TensorName::Index(0), datatype: Datatype::Uint8, shape: &[], data };
        let placed = arena.write_request(&HEAD, &[tensor(&inside), tensor(&outside)]).unwrap();
        let offset = arena.offset_of(&inside).unwrap();
        assert_eq!(placed.slice(offset, 99_936).unwrap().as_ptr(), inside.as_ptr());
        assert!(placed.bytes() > 99_936 && placed.bytes() < 101_000);
        drop((body, inside));
        assert!(arena.used_bytes() > 100_000);
        drop(placed);
        assert_eq!(arena.used_bytes(), 0);
    }

    #[test]
    fn an_input_that_is_not_aligned_for_its_elements_is_copied() {
        let arena = arena();
        let body = arena.allocate(100_000).unwrap().freeze();
        let crooked = body.slice(2..90_002);
        let placed = |datatype| {
            let tensor = TensorRef { name: TensorName::Index(0), datatype, shape: &[], data: &crooked };
            arena.write_request(&HEAD, &[tensor]).unwrap().parts[0].1.len()
        };
        assert!(placed(Datatype::Fp16) < 1000);
        assert!(placed(Datatype::Fp32) > 90_000);
    }

    #[test]
    fn memory_beside_a_request_is_not_its_own() {
        let arena = arena();
        let other = arena.allocate(64).unwrap();
        let placed = arena.write_request(&HEAD, &[]).unwrap();
        assert!(placed.slice(placed.offset, placed.len as usize).is_some());
        assert!(placed.slice(placed.offset, placed.len as usize + 1).is_none());
        assert!(placed.slice(other.offset(), 1).is_none());
        assert!(placed.slice(u64::MAX, usize::MAX).is_none());
    }

    #[test]
    fn an_exhausted_reservation_refuses_and_recovers() {
        let arena = RequestArena::create(1 << 20).unwrap();
        let all = arena.allocate(1 << 20).unwrap();
        assert!(arena.allocate(1).is_none());
        assert!(arena.write_request(&HEAD, &[]).is_none());
        drop(all);
        assert!(arena.allocate(1).is_some());
    }

    #[test]
    fn a_tensor_of_200_megabytes_leaves_no_memory_behind() {
        let arena = arena();
        let mut buffer = arena.allocate(200_000_000).unwrap();
        buffer.fill(1);
        assert!(arena.memory.resident_bytes() >= 200_000_000);
        drop(buffer);
        assert!(arena.idle_bytes() >= 200_000_000);
        arena.trim();
        assert_eq!((arena.memory.resident_bytes(), arena.idle_bytes()), (0, 0));
    }
}
