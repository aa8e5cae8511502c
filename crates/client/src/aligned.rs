//! Buffers in which a tensor lies where arrays want it.

use bytes::{Buf, BytesMut};

/// What processors and numpy's vector code like best.
const ALIGNMENT: usize = 64;

/// An empty buffer with room for `length` bytes, the one at `offset` of which will be aligned.
pub fn room(length: usize, offset: usize) -> BytesMut {
    let mut room = BytesMut::with_capacity(length + ALIGNMENT);
    let gap = (room.as_ptr() as usize + offset).next_multiple_of(ALIGNMENT) - (room.as_ptr() as usize + offset);
    room.resize(gap, 0);
    room.advance(gap);
    debug_assert!(room.capacity() >= length, "the room is not moved by what is written to it");
    room
}
