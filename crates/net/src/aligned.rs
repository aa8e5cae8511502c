//! Collects bytes from the network so that a tensor among them begins at an aligned address.

use std::sync::Arc;

use alipes_link::{ArenaBuffer, RequestArena};
use alipes_protocol::copies;
use alipes_protocol::limits::{ARENA_RESERVE_BYTES, BODY_RESERVE_BYTES, BODY_TRUST};
use bytes::{Bytes, BytesMut};

/// Alignment in bytes: the widest vector loads of today's processors.
const ALIGNMENT: usize = 64;

/// Bytes that arrive in several pieces, collected with one copy.
pub struct AlignedBytes {
    announced: usize,
    aligned_at: usize,
    /// The arena for the bytes; without one, or while it is full, they are collected on the heap.
    arena: Option<Arc<RequestArena>>,
    room: Room,
    // Padding in front, which moves the tensor to its boundary.
    skip: usize,
}

impl AlignedBytes {
    /// Begins with the first piece of `announced` bytes, of which the one at `aligned_at` comes to lie on a 64-byte
    /// boundary.
    ///
    /// An announced length is only a claim: memory is reserved for `BODY_TRUST` times the bytes that have arrived, so
    /// that the buffer of a large tensor grows in two or three steps, and a client that sends nothing holds next to
    /// nothing.
    pub fn begin(first: &[u8], announced: usize, aligned_at: usize) -> AlignedBytes {
        let mut bytes = AlignedBytes::new(announced, aligned_at, None);
        bytes.extend(first);
        bytes
    }

    /// Begins without any piece, for `announced` bytes of a tensor, in memory shared with a model's workers, which need
    /// no copy of it. The server must not interpret these bytes, since workers may change them.
    pub fn for_workers(arena: Arc<RequestArena>, announced: usize) -> AlignedBytes {
        AlignedBytes::new(announced, 0, Some(arena))
    }

    fn new(announced: usize, aligned_at: usize, arena: Option<Arc<RequestArena>>) -> AlignedBytes {
        AlignedBytes { announced, aligned_at, arena, room: Room::Heap(BytesMut::new()), skip: 0 }
    }

    /// Appends a piece.
    pub fn extend(&mut self, piece: &[u8]) {
        let needed = self.len() + piece.len();
        if needed > self.room.capacity() - self.skip {
            self.move_to_larger(needed);
        }
        self.room.extend(piece);
    }

    fn move_to_larger(&mut self, needed: usize) {
        let unasked = if self.arena.is_some() { ARENA_RESERVE_BYTES } else { BODY_RESERVE_BYTES };
        let believed = needed.saturating_mul(BODY_TRUST).max(unasked);
        let mut room = Room::make(self.announced.min(believed).max(needed) + ALIGNMENT, self.arena.as_ref());
        let skip = room.address().wrapping_add(self.aligned_at).wrapping_neg() % ALIGNMENT;
        room.extend(&[0; ALIGNMENT][..skip]);
        room.extend(&self.room.filled()[self.skip..]);
        (self.room, self.skip) = (room, skip);
    }

    /// Bytes that have arrived.
    pub fn len(&self) -> usize {
        self.room.filled().len() - self.skip
    }

    /// Whether nothing has arrived.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that are set aside, alignment included.
    pub fn capacity(&self) -> usize {
        self.room.capacity()
    }

    /// What has arrived, in one piece.
    pub fn freeze(self) -> Bytes {
        let end = self.room.filled().len();
        self.room.freeze().slice(self.skip..end)
    }
}

/// Memory that is filled from its beginning.
enum Room {
    Heap(BytesMut),
    Arena { buffer: ArenaBuffer, filled: usize },
}

impl Room {
    /// Room for `bytes` bytes, in the arena while that has space.
    fn make(bytes: usize, arena: Option<&Arc<RequestArena>>) -> Room {
        match arena.and_then(|arena| arena.allocate(bytes)) {
            Some(buffer) => Room::Arena { buffer, filled: 0 },
            None => Room::Heap(BytesMut::with_capacity(bytes)),
        }
    }

    fn capacity(&self) -> usize {
        match self {
            Room::Heap(buffer) => buffer.capacity(),
            Room::Arena { buffer, .. } => buffer.len(),
        }
    }

    fn address(&self) -> usize {
        match self {
            Room::Heap(buffer) => buffer.as_ptr().addr(),
            Room::Arena { buffer, .. } => buffer.as_ptr().addr(),
        }
    }

    fn filled(&self) -> &[u8] {
        match self {
            Room::Heap(buffer) => buffer,
            Room::Arena { buffer, filled } => &buffer[..*filled],
        }
    }

    /// Appends bytes, for which there is room.
    fn extend(&mut self, bytes: &[u8]) {
        copies::note(bytes.len());
        match self {
            Room::Heap(buffer) => buffer.extend_from_slice(bytes),
            Room::Arena { buffer, filled } => {
                let end = *filled + bytes.len();
                buffer[*filled..end].copy_from_slice(bytes);
                *filled = end;
            }
        }
    }

    fn freeze(self) -> Bytes {
        match self {
            Room::Heap(buffer) => buffer.freeze(),
            Room::Arena { buffer, .. } => buffer.freeze(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tensor_behind_a_header_of_any_length_is_aligned() {
        for header in 0..200 {
            let mut bytes = AlignedBytes::begin(&vec![1; header], header + 8, header);
            bytes.extend(&[2; 8]);
            assert_eq!(bytes.len(), header + 8);
            let whole = bytes.freeze();
            assert_eq!(whole[header..].as_ptr().addr() % ALIGNMENT, 0);
            assert_eq!((&whole[..header], &whole[header..]), (&vec![1; header][..], &[2; 8][..]));
        }
    }

    #[test]
    fn a_tensor_stays_in_order_and_aligned_however_often_room_is_made() {
        let sent: Vec<u8> = (0..5_000_000_u32).map(|number| number as u8).collect();
        let mut bytes = AlignedBytes::begin(&sent[..100], sent.len(), 77);
        sent[100..].chunks(70_001).for_each(|piece| bytes.extend(piece));
        let whole = bytes.freeze();
        assert_eq!(whole[77..].as_ptr().addr() % ALIGNMENT, 0);
        assert!(whole == sent);
    }

    #[test]
    fn a_tensor_for_workers_lies_in_their_memory_as_long_as_that_has_room() {
        let arena = RequestArena::create(64 << 20).unwrap();
        let sent: Vec<u8> = (0..5_000_000_u32).map(|number| number as u8).collect();
        let collect = || {
            let mut bytes = AlignedBytes::for_workers(Arc::clone(&arena), sent.len());
            sent.chunks(70_001).for_each(|piece| bytes.extend(piece));
            bytes.freeze()
        };
        let whole = collect();
        assert!(whole == sent);
        assert!(arena.offset_of(&whole).is_some_and(|offset| offset.is_multiple_of(ALIGNMENT as u64)));
        let occupied = arena.allocate(50 << 20).unwrap();
        let elsewhere = collect();
        assert!(elsewhere == sent && arena.offset_of(&elsewhere).is_none());
        drop((whole, occupied));
        assert_eq!(arena.used_bytes(), 0);
    }

    #[test]
    fn an_announcement_is_not_believed_before_anything_has_come() {
        let bytes = AlignedBytes::begin(b"{", usize::MAX, 0);
        assert!(bytes.capacity() <= BODY_RESERVE_BYTES + 2 * ALIGNMENT);
        let arena = RequestArena::create(64 << 20).unwrap();
        let mut bytes = AlignedBytes::for_workers(Arc::clone(&arena), usize::MAX);
        assert_eq!(arena.used_bytes(), 0);
        bytes.extend(b"1");
        assert!(bytes.capacity() <= ARENA_RESERVE_BYTES + 2 * ALIGNMENT);
    }

    #[test]
    fn bytes_beyond_the_announced_length_are_accepted() {
        let mut bytes = AlignedBytes::begin(b"ab", 0, 0);
        bytes.extend(&[b'c'; 1000]);
        assert_eq!(bytes.freeze().len(), 1002);
    }
}
