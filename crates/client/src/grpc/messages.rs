//! Messages out of the pieces in which they arrive.

use alipes_protocol::limits::{BODY_RESERVE_BYTES, GRPC_MAX_MESSAGE_BYTES};
use bytes::{Buf, Bytes, BytesMut};

use crate::ClientError;

/// Bytes in front of a message: whether it is compressed, and its length.
pub const PREFIX_BYTES: usize = 5;

/// The messages of a call. One that arrived in one piece stays a slice of it; another is put together in a buffer of its
/// own, which is copied once.
#[derive(Default)]
pub struct Messages {
    /// What came last.
    piece: Bytes,
    /// A message that began before it, with its prefix.
    begun: BytesMut,
}

impl Messages {
    /// Takes the next piece; the messages of the one before have been taken.
    pub fn push(&mut self, piece: Bytes) {
        debug_assert!(self.piece.is_empty(), "the messages of a piece are taken before the next comes");
        self.piece = piece;
    }

    /// The next whole message.
    ///
    /// # Errors
    /// A message that is compressed, which was not offered, or longer than the limit.
    pub fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        if self.begun.is_empty()
            && let Some(length) = announced(&self.piece)?
            && self.piece.len() - PREFIX_BYTES >= length
        {
            self.piece.advance(PREFIX_BYTES);
            return Ok(Some(self.piece.split_to(length)));
        }
        self.join()
    }

    /// Whether a message has begun to arrive and is not whole.
    pub fn is_begun(&self) -> bool {
        !self.begun.is_empty()
    }

    fn join(&mut self) -> Result<Option<Bytes>, ClientError> {
        self.take(PREFIX_BYTES.saturating_sub(self.begun.len()));
        let Some(length) = announced(&self.begun)? else { return Ok(None) };
        let missing = PREFIX_BYTES + length - self.begun.len();
        // A length is only a claim: what nobody writes to costs no memory, but a claim of gigabytes is not believed.
        let room = missing.min((self.begun.len() * 16).max(BODY_RESERVE_BYTES));
        if self.begun.capacity() - self.begun.len() < missing.min(self.piece.len()).max(1) {
            self.begun.reserve(room);
        }
        self.take(missing);
        if self.begun.len() < PREFIX_BYTES + length {
            return Ok(None);
        }
        let mut message = std::mem::take(&mut self.begun).freeze();
        message.advance(PREFIX_BYTES);
        Ok(Some(message))
    }

    fn take(&mut self, most: usize) {
        let part = self.piece.split_to(most.min(self.piece.len()));
        self.begun.extend_from_slice(&part);
    }
}

/// Length of the message behind a prefix, as far as that has come.
fn announced(bytes: &[u8]) -> Result<Option<usize>, ClientError> {
    let Some([compressed, length @ ..]) = bytes.first_chunk::<PREFIX_BYTES>() else { return Ok(None) };
    if *compressed != 0 {
        return Err(ClientError::broken("the server sent a compressed message, which was not offered"));
    }
    let length = u32::from_be_bytes(*length) as usize;
    if length > GRPC_MAX_MESSAGE_BYTES {
        return Err(ClientError::broken(format!(
            "the server announces a message of {length} bytes, more than {GRPC_MAX_MESSAGE_BYTES}"
        )));
    }
    Ok(Some(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(messages: &[&[u8]]) -> Vec<u8> {
        let framed = messages.iter().flat_map(|message| {
            let prefix = (message.len() as u32).to_be_bytes();
            [&[0], &prefix[..], message].concat()
        });
        framed.collect()
    }

    #[test]
    fn messages_are_the_same_however_they_are_cut() {
        let expected: [&[u8]; 4] = [b"one", b"", b"three", &[7; 300]];
        let wire = wire(&expected);
        for size in 1..=wire.len() {
            let mut messages = Messages::default();
            let mut read = Vec::new();
            for piece in wire.chunks(size) {
                messages.push(Bytes::copy_from_slice(piece));
                while let Some(message) = messages.next().unwrap() {
                    read.push(message.to_vec());
                }
            }
            assert_eq!(read, expected, "pieces of {size}");
            assert!(!messages.is_begun());
        }
    }

    #[test]
    fn a_message_in_one_piece_is_not_copied() {
        let piece = Bytes::from(wire(&[b"one", b"two"]));
        let mut messages = Messages::default();
        messages.push(piece.clone());
        assert_eq!(messages.next().unwrap().unwrap().as_ptr(), piece[5..].as_ptr());
    }

    #[test]
    fn compressed_and_endless_messages_are_refused() {
        for bad in [&[1, 0, 0, 0, 0][..], &[0, 255, 255, 255, 255]] {
            let mut messages = Messages::default();
            messages.push(Bytes::copy_from_slice(bad));
            assert!(messages.next().is_err());
        }
    }
}
