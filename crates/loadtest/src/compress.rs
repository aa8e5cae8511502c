//! Messages of gRPC, compressed before they are sent.

use std::io::{self, Write};

use alipes_client::Compression;
use bytes::{BufMut, Bytes, BytesMut};
use flate2::write::{GzEncoder, ZlibEncoder};

/// In front of a message: whether it is compressed, and its length in four bytes.
const PREFIX_BYTES: usize = 5;

/// A message with its prefix, compressed; one that would be no smaller stays as it is, as in gRPC's own libraries.
pub fn compressed(framed: Bytes, how: Option<Compression>) -> Bytes {
    let Some(how) = how else { return framed };
    let plain = &framed[PREFIX_BYTES.min(framed.len())..];
    match deflated(plain, how) {
        Ok(small) if small.len() < plain.len() => {
            let mut message = BytesMut::with_capacity(PREFIX_BYTES + small.len());
            message.put_u8(1);
            message.put_u32(small.len() as u32);
            message.extend_from_slice(&small);
            message.freeze()
        }
        _ => framed,
    }
}

fn deflated(plain: &[u8], how: Compression) -> io::Result<Vec<u8>> {
    let effort = flate2::Compression::default();
    match how {
        Compression::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), effort);
            encoder.write_all(plain).and_then(|()| encoder.finish())
        }
        Compression::Deflate => {
            let mut encoder = ZlibEncoder::new(Vec::new(), effort);
            encoder.write_all(plain).and_then(|()| encoder.finish())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::{GzDecoder, ZlibDecoder};

    use super::*;

    fn framed(message: &[u8]) -> Bytes {
        let mut whole = vec![0];
        whole.put_u32(message.len() as u32);
        whole.extend_from_slice(message);
        whole.into()
    }

    #[test]
    fn a_message_that_gets_smaller_is_compressed() {
        let message = [7; 1000];
        for how in [Compression::Gzip, Compression::Deflate] {
            let made = compressed(framed(&message), Some(how));
            assert_eq!((made[0], u32::from_be_bytes(made[1..5].try_into().unwrap())), (1, made.len() as u32 - 5));
            let mut read = Vec::new();
            match how {
                Compression::Gzip => GzDecoder::new(&made[5..]).read_to_end(&mut read).unwrap(),
                Compression::Deflate => ZlibDecoder::new(&made[5..]).read_to_end(&mut read).unwrap(),
            };
            assert_eq!(read, message);
        }
    }

    #[test]
    fn other_messages_stay_as_they_are() {
        assert_eq!(compressed(framed(b"ab"), Some(Compression::Gzip)), framed(b"ab"));
        assert_eq!(compressed(framed(&[7; 1000]), None), framed(&[7; 1000]));
        assert_eq!(compressed(Bytes::new(), Some(Compression::Gzip)), Bytes::new());
    }
}
