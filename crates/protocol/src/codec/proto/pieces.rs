//! A response as the pieces it leaves in: large tensors as the slices they are, everything else in one buffer.

use bytes::{Bytes, BytesMut};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use smallvec::SmallVec;

use super::inference::ModelInferResponse;

/// Field number of `raw_output_contents` in `ModelInferResponse`: the last, so the tensors may follow the rest.
const RAW_OUTPUT_CONTENTS: u32 = 6;

/// A tensor from this size on, in bytes, is not copied. A piece begins a frame of its own, and a smaller tensor fits
/// into one frame of HTTP/2's default size together with the rest.
const LARGE_TENSOR_BYTES: usize = 16 * 1024;

/// Pieces of a message; most have one.
pub type Pieces = SmallVec<[Bytes; 1]>;

/// The serialized message behind `front`, which the wire wants before it.
pub fn response_pieces(mut message: ModelInferResponse, front: &[u8]) -> Pieces {
    let length = message.encoded_len();
    let tensors = std::mem::take(&mut message.raw_output_contents);
    let large: usize = tensors.iter().filter(|tensor| is_large(tensor)).map(Bytes::len).sum();
    let mut buffer = BytesMut::with_capacity(front.len() + length - large);
    buffer.extend_from_slice(front);
    message.encode_raw(&mut buffer);
    let mut pieces = Pieces::new();
    for tensor in tensors {
        encode_key(RAW_OUTPUT_CONTENTS, WireType::LengthDelimited, &mut buffer);
        encode_varint(tensor.len() as u64, &mut buffer);
        if is_large(&tensor) {
            pieces.extend([buffer.split().freeze(), tensor]);
        } else {
            buffer.extend_from_slice(&tensor);
        }
    }
    if !buffer.is_empty() {
        pieces.push(buffer.freeze());
    }
    pieces
}

fn is_large(tensor: &Bytes) -> bool {
    tensor.len() >= LARGE_TENSOR_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces_of(sizes: &[usize]) -> (Vec<u8>, Pieces) {
        let message = ModelInferResponse {
            model_name: "m".to_owned(),
            raw_output_contents: sizes.iter().map(|&size| vec![9; size].into()).collect(),
            ..Default::default()
        };
        let wire = [&b"<"[..], &message.encode_to_vec()].concat();
        (wire, response_pieces(message, b"<"))
    }

    #[test]
    fn the_pieces_are_the_message() {
        let large = LARGE_TENSOR_BYTES;
        for sizes in [&[][..], &[0], &[4, 4], &[large], &[4, large, 4], &[large, large + 1], &[large - 1, large]] {
            let (wire, pieces) = pieces_of(sizes);
            assert_eq!(pieces.concat(), wire, "{sizes:?}");
        }
    }

    #[test]
    fn small_tensors_leave_in_one_piece_and_large_ones_uncopied() {
        assert_eq!(pieces_of(&[4, 400]).1.len(), 1);
        let tensor = Bytes::from(vec![1; LARGE_TENSOR_BYTES]);
        let message = ModelInferResponse { raw_output_contents: vec![tensor.clone()], ..Default::default() };
        assert_eq!(response_pieces(message, b"")[1].as_ptr(), tensor.as_ptr());
    }
}
