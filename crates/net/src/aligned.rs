//! Collects bytes from the network so that a tensor among them begins at an aligned address.

use std::mem;
use std::sync::Arc;

use alipes_link::{ArenaBuffer, RequestArena};
use alipes_protocol::copies;
use alipes_protocol::limits::{ARENA_RESERVE_BYTES, BODY_PROVEN_BYTES, BODY_TRUST};
use bytes::{Bytes, BytesMut};

/// Alignment in bytes: the widest vector loads of today's processors.
const ALIGNMENT: usize = 64;

/// Most pieces that are kept as they came: a client that sends single bytes is not given a list of them.
const MOST_PIECES: usize = 32;

/// Bytes that arrive in several pieces, collected with one copy.
#[derive(Default)]
pub struct AlignedBytes {
    announced: usize,
    aligned_at: usize,
    /// The arena for the bytes; without one, or while it is full, they are collected on the heap.
    arena: Option<Arc<RequestArena>>,
    /// Empty once there is room.
    first: Pieces,
    room: Room,
    // Padding in front, which moves the tensor to its boundary.
    skip: usize,
}

impl AlignedBytes {
    /// Begins without any piece, for `announced` bytes, of which the one at `aligned_at` comes to lie on a 64-byte
    /// boundary.
    ///
    /// An announced length is only a claim. The first `BODY_PROVEN_BYTES` stay in the pieces that they came in; then
    /// memory is reserved for `BODY_TRUST` times the bytes that have arrived, so that the buffer of a large tensor
    /// grows in one or two steps, and a client that sends nothing holds next to nothing. Where more arrives than was
    /// announced, as of a body of unknown length, the buffer doubles: each byte is then copied twice on average,
    /// however large the body is.
    pub fn new(announced: usize, aligned_at: usize) -> AlignedBytes {
        AlignedBytes { announced, aligned_at, ..AlignedBytes::default() }
    }

    /// Begins without any piece, for `announced` bytes of a tensor, in memory shared with a model's workers, which need
    /// no copy of it. The server must not interpret these bytes, since workers may change them.
    pub fn for_workers(arena: Arc<RequestArena>, announced: usize) -> AlignedBytes {
        AlignedBytes { announced, arena: Some(arena), ..AlignedBytes::default() }
    }

    /// Bytes that are copied so that there is room for a piece of so many.
    pub fn moved_by(&self, bytes: usize) -> usize {
        if self.len() + bytes > self.room.capacity() - self.skip { self.len() } else { 0 }
    }

    /// Appends a piece, which is kept as it is while few have come.
    pub fn push(&mut self, piece: Bytes) {
        let is_first = self.room.capacity() == 0 && self.arena.is_none();
        if !(is_first && self.first.take(&piece)) {
            self.extend(&piece);
        }
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
        self.move_to(self.reserve(needed));
    }

    fn move_to(&mut self, bytes: usize) {
        let mut room = Room::make(bytes + ALIGNMENT, self.arena.as_ref());
        let skip = room.address().wrapping_add(self.aligned_at).wrapping_neg() % ALIGNMENT;
        room.extend(&[0; ALIGNMENT][..skip]);
        mem::take(&mut self.first).kept.iter().for_each(|piece| room.extend(piece));
        room.extend(&self.room.filled()[self.skip..]);
        (self.room, self.skip) = (room, skip);
    }

    /// Bytes to reserve where so many are needed now.
    fn reserve(&self, needed: usize) -> usize {
        if needed > self.announced {
            return needed.max(2 * self.len());
        }
        let believed = match self.arena {
            // Shared memory takes a page when it is written to.
            Some(_) => needed.saturating_mul(BODY_TRUST).max(ARENA_RESERVE_BYTES),
            // The heap's pages may be huge ones, so that the first byte takes all that is reserved.
            None if needed < BODY_PROVEN_BYTES => 2 * needed,
            None => needed.saturating_mul(BODY_TRUST),
        };
        self.announced.min(believed)
    }

    /// Bytes that have arrived.
    pub fn len(&self) -> usize {
        self.first.bytes + self.room.filled().len() - self.skip
    }

    /// Whether nothing has arrived.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that are set aside, alignment included.
    pub fn capacity(&self) -> usize {
        self.first.bytes + self.room.capacity()
    }

    /// What has arrived, in one piece.
    pub fn freeze(mut self) -> Bytes {
        if self.first.bytes > 0 {
            self.move_to(self.first.bytes);
        }
        let end = self.room.filled().len();
        self.room.freeze().slice(self.skip..end)
    }
}

/// The first pieces, as they came.
#[derive(Default)]
struct Pieces {
    kept: Vec<Bytes>,
    bytes: usize,
}

impl Pieces {
    /// Keeps one more; false where there are enough.
    fn take(&mut self, piece: &Bytes) -> bool {
        let fits = self.kept.len() < MOST_PIECES && self.bytes + piece.len() <= BODY_PROVEN_BYTES;
        if fits {
            self.bytes += piece.len();
            self.kept.push(piece.clone());
        }
        fits
    }
}

/// Memory that is filled from its beginning.
enum Room {
    Heap(BytesMut),
    Arena { buffer: ArenaBuffer, filled: usize },
}

impl Default for Room {
    fn default() -> Room {
        Room::Heap(BytesMut::new())
    }
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
            let mut bytes = AlignedBytes::new(header + 8, header);
            bytes.extend(&vec![1; header]);
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
        let mut bytes = AlignedBytes::new(sent.len(), 77);
        for piece in sent[..100].chunks(7).chain(sent[100..].chunks(70_001)) {
            bytes.push(Bytes::copy_from_slice(piece));
        }
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
        let mut bytes = AlignedBytes::new(usize::MAX, 0);
        bytes.push(Bytes::from_static(b"{"));
        assert_eq!(bytes.capacity(), 1);
        for _ in 0..BODY_PROVEN_BYTES / 1000 {
            assert!(bytes.capacity() <= 2 * bytes.len() + 2 * ALIGNMENT);
            bytes.extend(&[0; 999]);
        }
        let arena = RequestArena::create(64 << 20).unwrap();
        let mut bytes = AlignedBytes::for_workers(Arc::clone(&arena), usize::MAX);
        assert_eq!(arena.used_bytes(), 0);
        bytes.extend(b"1");
        assert!(bytes.capacity() <= ARENA_RESERVE_BYTES + 2 * ALIGNMENT);
    }

    #[test]
    fn bytes_beyond_the_announced_length_are_accepted() {
        let mut bytes = AlignedBytes::new(0, 0);
        bytes.push(Bytes::from_static(b"ab"));
        bytes.extend(&[b'c'; 1000]);
        assert_eq!(bytes.freeze().len(), 1002);
    }

    /// Bytes that are copied to collect so many, in pieces of an HTTP/2 frame.
    fn copied(length: usize, announced: usize) -> usize {
        let piece = Bytes::from_static(&[7; 16_384]);
        let mut bytes = AlignedBytes::new(announced, 0);
        let mut copied = 0;
        while bytes.len() < length {
            let (before, room) = (bytes.len(), bytes.capacity());
            bytes.push(piece.clone());
            let (stays, kept) = (bytes.capacity() == room, bytes.capacity() == bytes.len());
            copied += if kept { 0 } else { piece.len() } + if stays || kept { 0 } else { before };
        }
        copied
    }

    #[test]
    fn what_a_piece_has_moved_is_known_before() {
        let piece = [7; 70_001];
        for announced in [0, 5_000_000] {
            let (mut bytes, mut moved) = (AlignedBytes::new(announced, 0), Vec::new());
            while bytes.len() < 5_000_000 {
                let (expected, before) = (bytes.moved_by(piece.len()), bytes.room.address());
                bytes.extend(&piece);
                let has_moved = bytes.room.address() != before && bytes.len() > piece.len();
                assert_eq!(expected > 0, has_moved, "{} bytes", bytes.len());
                moved.extend(Some(expected).filter(|&bytes| bytes > 0));
            }
            assert!(moved.len() > 1 && moved.is_sorted(), "{moved:?}");
        }
    }

    #[test]
    fn a_body_of_unknown_length_is_copied_about_twice_however_long_it_is() {
        for length in [1 << 20, 16 << 20, 64 << 20] {
            let (known, unknown) = (copied(length, length), copied(length, 0));
            assert!(known < length * 3 / 2, "{known} of {length}");
            assert!(unknown <= length * 5 / 2, "{unknown} of {length}");
        }
    }
}
