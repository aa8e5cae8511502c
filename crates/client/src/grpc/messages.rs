//! Messages out of the pieces in which they arrive.

#[cfg(test)]
mod fuzz;

use alipes_protocol::limits::GRPC_MAX_MESSAGE_BYTES;
use bytes::{Buf, Bytes, BytesMut};

use crate::aligned;
use crate::error::ClientError;

/// Bytes in front of a message: whether it is compressed, and its length.
pub const PREFIX_BYTES: usize = 5;

/// Finds the first tensor in the beginning of a message.
type Locate = fn(&[u8]) -> Option<usize>;

/// The messages of a call. One that arrived in one piece stays a slice of it; another is put together in a buffer of
/// its own, which is copied once.
#[derive(Default)]
pub struct Messages {
    /// What came last.
    piece: Bytes,
    /// A message that began before it, with its prefix.
    begun: BytesMut,
    /// The first tensor of a message that is put together here is aligned.
    locate: Option<Locate>,
}

impl Messages {
    /// Messages in which tensors are found by `locate`.
    pub fn with_tensors(locate: Locate) -> Messages {
        Messages { locate: Some(locate), ..Messages::default() }
    }

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
        let whole = PREFIX_BYTES + length;
        if self.begun.len() == PREFIX_BYTES && !self.piece.is_empty() {
            let tensor = self.locate.and_then(|locate| locate(&self.piece)).unwrap_or(0);
            // What nobody writes to costs no memory, so the server is believed, within the limit.
            let mut room = aligned::room(whole, PREFIX_BYTES + tensor);
            room.extend_from_slice(&self.begun);
            self.begun = room;
        }
        self.take(whole - self.begun.len());
        if self.begun.len() < whole {
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
    fn the_tensor_of_a_message_in_pieces_is_aligned() {
        for start in [0, 7, 300] {
            let content: Vec<u8> = (0..1000).map(|byte| byte as u8).collect();
            let locate: Locate = match start {
                0 => |_| None,
                7 => |_| Some(7),
                _ => |_| Some(300),
            };
            let mut messages = Messages::with_tensors(locate);
            let mut read = None;
            for piece in wire(&[&content]).chunks(400) {
                messages.push(Bytes::copy_from_slice(piece));
                read = messages.next().unwrap();
            }
            let read = read.unwrap();
            assert_eq!(read, content);
            assert!((read.as_ptr() as usize + start).is_multiple_of(64), "{start}");
        }
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
