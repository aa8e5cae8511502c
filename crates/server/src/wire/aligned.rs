//! Where bytes from the network are collected so that a tensor among them begins at an aligned address.

use alipes_protocol::limits::BODY_RESERVE_BYTES;
use bytes::{Bytes, BytesMut};

/// Alignment in bytes: the widest vector loads of today's processors.
const ALIGNMENT: usize = 64;

/// Bytes that arrive in several pieces, collected with one copy.
pub struct AlignedBytes {
    buffer: BytesMut,
    // Unused bytes in front, which move the tensor to its boundary.
    skip: usize,
}

impl AlignedBytes {
    /// Room for `announced` bytes, of which the one at `aligned_at` comes to lie on a 64-byte boundary.
    ///
    /// An announcement is only a claim: no more than `BODY_RESERVE_BYTES` are set aside for it, and beyond those the
    /// buffer grows with what arrives, at the price of the alignment.
    pub fn with_capacity(announced: usize, aligned_at: usize) -> AlignedBytes {
        let mut buffer = BytesMut::with_capacity(announced.min(BODY_RESERVE_BYTES) + ALIGNMENT);
        let skip = buffer.as_ptr().addr().wrapping_add(aligned_at).wrapping_neg() % ALIGNMENT;
        buffer.resize(skip, 0);
        AlignedBytes { buffer, skip }
    }

    /// Appends a piece.
    pub fn extend(&mut self, piece: &[u8]) {
        self.buffer.extend_from_slice(piece);
    }

    /// Bytes that have arrived.
    pub fn len(&self) -> usize {
        self.buffer.len() - self.skip
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
            let mut bytes = AlignedBytes::with_capacity(header + 8, header);
            bytes.extend(&vec![1; header]);
            bytes.extend(&[2; 8]);
            assert_eq!(bytes.len(), header + 8);
            let whole = bytes.freeze();
            assert_eq!(whole[header..].as_ptr().addr() % ALIGNMENT, 0);
            assert_eq!((&whole[..header], &whole[header..]), (&vec![1; header][..], &[2; 8][..]));
        }
    }
}
