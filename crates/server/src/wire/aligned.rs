//! Where bytes from the network are collected so that a tensor among them begins at an aligned address.

use std::mem;

use alipes_protocol::limits::{BODY_RESERVE_BYTES, BODY_TRUST};
use bytes::{Bytes, BytesMut};

/// Alignment in bytes: the widest vector loads of today's processors.
const ALIGNMENT: usize = 64;

/// Bytes that arrive in several pieces, collected with one copy.
pub struct AlignedBytes {
    announced: usize,
    aligned_at: usize,
    buffer: BytesMut,
    // Unused bytes in front, which move the tensor to its boundary.
    skip: usize,
}

impl AlignedBytes {
    /// Begins with the first piece of `announced` bytes, of which the one at `aligned_at` comes to lie on a 64-byte
    /// boundary.
    ///
    /// An announcement is only a claim: it is believed up to `BODY_TRUST` times what has arrived, so that room for a
    /// large tensor is made in two or three steps, and a client that sends nothing holds next to nothing.
    pub fn begin(first: &[u8], announced: usize, aligned_at: usize) -> AlignedBytes {
        let mut bytes = AlignedBytes { announced, aligned_at, buffer: BytesMut::new(), skip: 0 };
        bytes.make_room(first.len());
        bytes.buffer.extend_from_slice(first);
        bytes
    }

    /// Appends a piece.
    pub fn extend(&mut self, piece: &[u8]) {
        let needed = self.len() + piece.len();
        if needed > self.buffer.capacity() - self.skip {
            let before = mem::take(&mut self.buffer);
            let arrived = self.skip..;
            self.make_room(needed);
            self.buffer.extend_from_slice(&before[arrived]);
        }
        self.buffer.extend_from_slice(piece);
    }

    fn make_room(&mut self, needed: usize) {
        let believed = needed.saturating_mul(BODY_TRUST).max(BODY_RESERVE_BYTES);
        self.buffer = BytesMut::with_capacity(self.announced.min(believed).max(needed) + ALIGNMENT);
        self.skip = self.buffer.as_ptr().addr().wrapping_add(self.aligned_at).wrapping_neg() % ALIGNMENT;
        self.buffer.resize(self.skip, 0);
    }

    /// Bytes that have arrived.
    pub fn len(&self) -> usize {
        self.buffer.len() - self.skip
    }

    /// Bytes that are set aside, alignment included.
    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// What has arrived, in one piece.
    pub fn freeze(self) -> Bytes {
        self.buffer.freeze().slice(self.skip..)
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
    fn an_announcement_is_not_believed_before_anything_has_come() {
        let bytes = AlignedBytes::begin(b"{", usize::MAX, 0);
        assert!(bytes.capacity() <= BODY_RESERVE_BYTES + 2 * ALIGNMENT);
    }

    #[test]
    fn more_than_was_announced_is_taken_as_well() {
        let mut bytes = AlignedBytes::begin(b"ab", 0, 0);
        bytes.extend(&[b'c'; 1000]);
        assert_eq!(bytes.freeze().len(), 1002);
    }
}
