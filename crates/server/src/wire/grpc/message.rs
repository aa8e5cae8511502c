//! Reading the one message of a unary call.

use std::error::Error;

use alipes_protocol::limits::GRPC_MAX_MESSAGE_BYTES;
use alipes_protocol::{Code, InferError};
use bytes::{Buf, Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use prost::Message;

use crate::wire::aligned::AlignedBytes;

/// Bytes in front of a message: a flag for compression and the length.
pub(super) const PREFIX_BYTES: usize = 5;

/// The message of a unary call.
///
/// A message that came in one piece is a slice of the network buffer. One that came in several is copied together,
/// once; `tensor` says where in its beginning a tensor starts, and this is then placed at an aligned address.
///
/// # Errors
///
/// A body that ends early, holds more than one message or none, a compressed or too large message, a broken
/// connection.
pub(super) async fn read_message<B>(mut body: B, tensor: fn(&[u8]) -> Option<usize>) -> Result<Bytes, InferError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Error,
{
    let mut arrived = Arrived::Nothing;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| broken(&error))?;
        if let Ok(piece) = frame.into_data()
            && !piece.is_empty()
        {
            arrived = arrived.with(piece, tensor)?;
        }
        if body.is_end_stream() {
            break;
        }
    }
    arrived.into_message()
}

/// The bytes as a message of its type.
///
/// # Errors
///
/// Bytes that are no such message.
pub(super) fn parse<M: Message + Default>(message: Bytes) -> Result<M, InferError> {
    M::decode(message).map_err(|error| InferError::internal(format!("failed to parse the request message: {error}")))
}

/// What has come of the message so far.
enum Arrived {
    Nothing,
    /// Fewer bytes than the prefix has.
    Prefix(BytesMut),
    /// The message, as it came.
    Whole(Bytes),
    /// The message's beginning.
    Part {
        received: AlignedBytes,
        length: usize,
    },
}

impl Arrived {
    fn with(self, piece: Bytes, tensor: fn(&[u8]) -> Option<usize>) -> Result<Arrived, InferError> {
        match self {
            Arrived::Nothing if piece.len() >= PREFIX_BYTES => Arrived::begin(piece, tensor),
            Arrived::Nothing => Ok(Arrived::Prefix(BytesMut::from(piece))),
            Arrived::Prefix(mut prefix) => {
                prefix.extend_from_slice(&piece);
                if prefix.len() < PREFIX_BYTES {
                    return Ok(Arrived::Prefix(prefix));
                }
                Arrived::begin(prefix.freeze(), tensor)
            }
            Arrived::Whole(_) => Err(more_than_one()),
            Arrived::Part { mut received, length } => {
                if piece.len() > length - received.len() {
                    return Err(more_than_one());
                }
                received.extend(&piece);
                Ok(Arrived::Part { received, length })
            }
        }
    }

    /// The first bytes, prefix included.
    fn begin(mut piece: Bytes, tensor: fn(&[u8]) -> Option<usize>) -> Result<Arrived, InferError> {
        let length = message_length(&mut piece)?;
        match piece.len() {
            arrived if arrived == length => Ok(Arrived::Whole(piece)),
            arrived if arrived > length => Err(more_than_one()),
            _ => {
                let received = AlignedBytes::begin(&piece, length, tensor(&piece).unwrap_or(0));
                Ok(Arrived::Part { received, length })
            }
        }
    }

    fn into_message(self) -> Result<Bytes, InferError> {
        match self {
            Arrived::Whole(message) => Ok(message),
            Arrived::Part { received, length } if received.len() == length => Ok(received.freeze()),
            Arrived::Nothing => Err(InferError::internal("the call ended without a request message")),
            Arrived::Prefix(_) | Arrived::Part { .. } => {
                Err(InferError::internal("the call ended within its request message"))
            }
        }
    }
}

/// Takes the prefix off and gives the length that it announces.
fn message_length(piece: &mut Bytes) -> Result<usize, InferError> {
    if piece.get_u8() != 0 {
        return Err(InferError::new(Code::Unsupported, "compressed messages are not offered by this server"));
    }
    let length = piece.get_u32() as usize;
    if length > GRPC_MAX_MESSAGE_BYTES {
        return Err(InferError::new(
            Code::TooLarge,
            format!("request message of {length} bytes exceeds the limit of {GRPC_MAX_MESSAGE_BYTES} bytes"),
        ));
    }
    Ok(length)
}

fn more_than_one() -> InferError {
    InferError::internal("the call carries more than its one request message")
}

fn broken(error: &impl Error) -> InferError {
    InferError::new(Code::Cancelled, format!("the call broke off within its request message: {error}"))
}

#[cfg(test)]
mod tests {
    use alipes_protocol::limits::BODY_RESERVE_BYTES;

    use super::*;

    fn framed(message: &[u8]) -> Vec<u8> {
        let mut wire = vec![0];
        wire.extend_from_slice(&(message.len() as u32).to_be_bytes());
        wire.extend_from_slice(message);
        wire
    }

    fn arrive(wire: &[u8], piece_bytes: usize, tensor: fn(&[u8]) -> Option<usize>) -> Result<Bytes, String> {
        let arrived = wire
            .chunks(piece_bytes)
            .try_fold(Arrived::Nothing, |arrived, piece| arrived.with(Bytes::copy_from_slice(piece), tensor));
        arrived.and_then(Arrived::into_message).map_err(|error| error.message)
    }

    #[test]
    fn a_message_is_the_same_in_pieces_of_any_size() {
        let message: Vec<u8> = (0..200).collect();
        let wire = framed(&message);
        for piece_bytes in 1..=wire.len() {
            assert_eq!(arrive(&wire, piece_bytes, |_| Some(7)).as_deref(), Ok(message.as_slice()));
        }
    }

    #[test]
    fn one_piece_is_not_copied() {
        let wire = Bytes::from(framed(b"tensor"));
        let arrived = Arrived::Nothing.with(wire.clone(), |_| None).unwrap();
        assert_eq!(arrived.into_message().unwrap().as_ptr(), wire[PREFIX_BYTES..].as_ptr());
    }

    #[test]
    fn a_tensor_of_several_pieces_is_aligned() {
        let wire = framed(&[1; 100_000]);
        for start in [0, 1, 35, 64, 77] {
            let message = match start {
                0 => arrive(&wire, 1000, |_| Some(0)),
                1 => arrive(&wire, 1000, |_| Some(1)),
                35 => arrive(&wire, 1000, |_| Some(35)),
                64 => arrive(&wire, 1000, |_| Some(64)),
                _ => arrive(&wire, 1000, |_| Some(77)),
            };
            assert_eq!((message.unwrap().as_ptr() as usize + start) % 64, 0);
        }
    }

    #[test]
    fn bodies_that_are_not_one_message_are_refused() {
        let one = framed(b"one");
        let two = [one.clone(), one.clone()].concat();
        assert_eq!(arrive(&[], 8, |_| None), Err("the call ended without a request message".to_owned()));
        assert_eq!(arrive(&one[..3], 8, |_| None), Err("the call ended within its request message".to_owned()));
        assert_eq!(arrive(&one[..7], 6, |_| None), Err("the call ended within its request message".to_owned()));
        for piece_bytes in 1..=two.len() {
            let error = "the call carries more than its one request message".to_owned();
            assert_eq!(arrive(&two, piece_bytes, |_| None), Err(error));
        }
    }

    #[test]
    fn a_huge_length_is_refused_and_a_large_one_reserves_little() {
        let error = arrive(&[0, 0xff, 0xff, 0xff, 0xff], 8, |_| None).unwrap_err();
        assert_eq!(error, "request message of 4294967295 bytes exceeds the limit of 2147483647 bytes");
        match Arrived::Nothing.with(Bytes::from_static(&[0, 0x7f, 0xff, 0xff, 0xff, 1]), |_| None) {
            Ok(Arrived::Part { received, .. }) => assert!(received.capacity() <= 2 * BODY_RESERVE_BYTES),
            _ => panic!("a message that has only begun"),
        }
    }

    #[test]
    fn a_compressed_message_is_refused() {
        let error = arrive(&[1, 0, 0, 0, 0], 8, |_| None).unwrap_err();
        assert_eq!(error, "compressed messages are not offered by this server");
    }
}
