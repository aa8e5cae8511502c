//! A response as the bytes of its message.
//!
//! Written directly from what the response is made of: no message is built on the way, so a response costs no
//! allocation but its share of a buffer. That is what a stream of many small responses is made of.

use bytes::{BufMut, Bytes, BytesMut};
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};
use smallvec::SmallVec;

use crate::{InferResponse, Parameter, Tensor, copies};

/// A tensor from this size on, in bytes, is not copied. A piece begins a frame of its own, and a smaller tensor fits
/// into one frame of HTTP/2's default size together with the rest.
const LARGE_TENSOR_BYTES: usize = 16 * 1024;

/// The parameter that says whether more responses follow.
pub(super) const FINAL_RESPONSE: &str = "triton_final_response";

/// Pieces of a message; most have one.
pub type Pieces = SmallVec<[Bytes; 1]>;

/// What a `ModelInferResponse` says. Outputs always leave as raw contents, and these are the tensors' own bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResponseMessage<'a> {
    /// Which model answered; empty where none did.
    pub model_name: &'a str,
    /// Which version of it; none in a message without outputs of it.
    pub model_version: Option<i64>,
    /// The request's id; empty where it had none.
    pub id: &'a str,
    /// Parameters that the model attached.
    pub parameters: &'a [(String, Parameter)],
    /// On a stream: whether this is the request's last response.
    pub final_response: Option<bool>,
    /// The outputs.
    pub outputs: &'a [Tensor],
}

impl ResponseMessage<'_> {
    /// Bytes of the message.
    pub fn encoded_len(&self) -> usize {
        let version = self.model_version.map_or(0, |version| text_len(itoa::Buffer::new().format(version)));
        let parameters = self.parameters.iter().map(|(key, value)| nested_len(entry_len(key, value)));
        let last = self.final_response.map_or(0, |last| nested_len(entry_len(FINAL_RESPONSE, &Parameter::Bool(last))));
        let outputs = self.outputs.iter().map(|output| nested_len(output_len(output)) + nested_len(output.data.len()));
        text_len(self.model_name)
            + version
            + text_len(self.id)
            + parameters.sum::<usize>()
            + last
            + outputs.sum::<usize>()
    }

    /// Appends the message to the buffer. Where a large tensor comes, the buffer so far and the tensor itself are cut
    /// off as pieces, and the buffer begins anew behind them.
    pub fn write(&self, buffer: &mut BytesMut, mut cut: impl FnMut(Bytes)) {
        write_text(1, self.model_name, buffer);
        if let Some(version) = self.model_version {
            write_text(2, itoa::Buffer::new().format(version), buffer);
        }
        write_text(3, self.id, buffer);
        for (key, value) in self.parameters {
            write_entry(key, value, buffer);
        }
        if let Some(last) = self.final_response {
            write_entry(FINAL_RESPONSE, &Parameter::Bool(last), buffer);
        }
        for output in self.outputs {
            write_output(output, buffer);
        }
        for output in self.outputs {
            begin_nested(6, output.data.len(), buffer);
            if is_large(&output.data) {
                cut(buffer.split().freeze());
                cut(output.data.clone());
            } else {
                copies::note(output.data.len());
                buffer.extend_from_slice(&output.data);
            }
        }
    }

    /// The message behind `front`, which the wire wants before it, as the pieces it leaves in.
    pub fn pieces(&self, front: &[u8]) -> Pieces {
        let large = self.outputs.iter().map(|output| &output.data).filter(|data| is_large(data));
        let copied = self.encoded_len() - large.map(Bytes::len).sum::<usize>();
        let mut buffer = BytesMut::with_capacity(front.len() + copied);
        buffer.extend_from_slice(front);
        let mut pieces = Pieces::new();
        self.write(&mut buffer, |piece| pieces.push(piece));
        if !buffer.is_empty() {
            pieces.push(buffer.freeze());
        }
        pieces
    }
}

impl<'a> From<&'a InferResponse> for ResponseMessage<'a> {
    fn from(response: &'a InferResponse) -> Self {
        ResponseMessage {
            model_name: &response.model_name,
            model_version: Some(response.model_version),
            id: &response.id,
            parameters: &response.parameters,
            final_response: None,
            outputs: &response.outputs,
        }
    }
}

/// What a `ModelStreamInferResponse` says.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamMessage<'a> {
    /// Why there is no response; empty where there is one.
    pub error: &'a str,
    /// The response, or which request and model the error is about.
    pub response: ResponseMessage<'a>,
}

impl StreamMessage<'_> {
    /// Bytes of the message.
    pub fn encoded_len(&self) -> usize {
        text_len(self.error) + nested_len(self.response.encoded_len())
    }

    /// Appends the message to the buffer, as [`ResponseMessage::write`] does.
    pub fn write(&self, buffer: &mut BytesMut, cut: impl FnMut(Bytes)) {
        write_text(1, self.error, buffer);
        begin_nested(2, self.response.encoded_len(), buffer);
        self.response.write(buffer, cut);
    }
}

fn is_large(data: &Bytes) -> bool {
    data.len() >= LARGE_TENSOR_BYTES
}

/// Bytes of a field whose content has so many; every field number here fits into one byte together with its type.
pub(super) fn nested_len(content: usize) -> usize {
    1 + encoded_len_varint(content as u64) + content
}

/// Bytes of a text field, which an empty text leaves out.
pub(super) fn text_len(text: &str) -> usize {
    if text.is_empty() { 0 } else { nested_len(text.len()) }
}

pub(super) fn entry_len(key: &str, value: &Parameter) -> usize {
    nested_len(key.len()) + nested_len(value_len(value))
}

/// Bytes of an `InferParameter`.
pub(super) fn value_len(value: &Parameter) -> usize {
    match value {
        Parameter::Bool(_) => 2,
        Parameter::Int64(value) => 1 + encoded_len_varint(*value as u64),
        Parameter::String(value) => nested_len(value.len()),
        Parameter::Double(_) => 1 + size_of::<f64>(),
    }
}

/// Bytes of an `InferOutputTensor`.
fn output_len(output: &Tensor) -> usize {
    described_len(&output.name, output.datatype.name(), &output.shape)
}

/// Bytes of what inputs and outputs say alike: name, datatype and shape.
pub(super) fn described_len(name: &str, datatype: &str, shape: &[i64]) -> usize {
    let sizes = if shape.is_empty() { 0 } else { nested_len(shape_len(shape)) };
    text_len(name) + text_len(datatype) + sizes
}

fn shape_len(shape: &[i64]) -> usize {
    shape.iter().map(|&size| encoded_len_varint(size as u64)).sum()
}

pub(super) fn begin_nested(field: u32, content: usize, buffer: &mut BytesMut) {
    encode_key(field, WireType::LengthDelimited, buffer);
    encode_varint(content as u64, buffer);
}

pub(super) fn write_bytes(field: u32, bytes: &[u8], buffer: &mut BytesMut) {
    begin_nested(field, bytes.len(), buffer);
    buffer.extend_from_slice(bytes);
}

pub(super) fn write_text(field: u32, text: &str, buffer: &mut BytesMut) {
    if !text.is_empty() {
        write_bytes(field, text.as_bytes(), buffer);
    }
}

/// An entry of a message's `parameters`, whose number is nearly always 4.
fn write_entry(key: &str, value: &Parameter, buffer: &mut BytesMut) {
    write_entry_of(4, key, value, buffer);
}

/// An entry of the map `field`: a map is a repeated message of key and value.
pub(super) fn write_entry_of(field: u32, key: &str, value: &Parameter, buffer: &mut BytesMut) {
    begin_nested(field, entry_len(key, value), buffer);
    write_bytes(1, key.as_bytes(), buffer);
    begin_nested(2, value_len(value), buffer);
    match value {
        Parameter::Bool(value) => {
            encode_key(1, WireType::Varint, buffer);
            encode_varint(u64::from(*value), buffer);
        }
        Parameter::Int64(value) => {
            encode_key(2, WireType::Varint, buffer);
            encode_varint(*value as u64, buffer);
        }
        Parameter::String(value) => write_bytes(3, value.as_bytes(), buffer),
        Parameter::Double(value) => {
            encode_key(4, WireType::SixtyFourBit, buffer);
            buffer.put_f64_le(*value);
        }
    }
}

fn write_output(output: &Tensor, buffer: &mut BytesMut) {
    begin_nested(5, output_len(output), buffer);
    write_described(&output.name, output.datatype.name(), &output.shape, buffer);
}

pub(super) fn write_described(name: &str, datatype: &str, shape: &[i64], buffer: &mut BytesMut) {
    write_text(1, name, buffer);
    write_text(2, datatype, buffer);
    if !shape.is_empty() {
        begin_nested(3, shape_len(shape), buffer);
        shape.iter().for_each(|&size| encode_varint(size as u64, buffer));
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::super::inference::{ModelInferResponse, ModelStreamInferResponse};
    use super::*;
    use crate::Datatype;

    fn tensor(size: usize) -> Tensor {
        let shape = [size as i64].into_iter().collect();
        Tensor { name: "Y".into(), datatype: Datatype::Uint8, shape, data: vec![9; size].into() }
    }

    #[test]
    fn the_pieces_are_the_message() {
        let large = LARGE_TENSOR_BYTES;
        for sizes in [&[][..], &[0], &[4, 4], &[large], &[4, large, 4], &[large, large + 1], &[large - 1, large]] {
            let outputs: Vec<Tensor> = sizes.iter().map(|&size| tensor(size)).collect();
            let message = ResponseMessage { model_name: "m", outputs: &outputs, ..Default::default() };
            let wire = message.pieces(b"<").concat();
            assert_eq!((wire[0], wire.len()), (b'<', 1 + message.encoded_len()), "{sizes:?}");
            let read = ModelInferResponse::decode(&wire[1..]).unwrap();
            assert_eq!(read.raw_output_contents.iter().map(Bytes::len).collect::<Vec<_>>(), sizes);
        }
    }

    #[test]
    fn small_tensors_leave_in_one_piece_and_large_ones_uncopied() {
        let pieces = |outputs: &[Tensor]| ResponseMessage { outputs, ..Default::default() }.pieces(b"");
        assert_eq!(pieces(&[tensor(4), tensor(400)]).len(), 1);
        let large = tensor(LARGE_TENSOR_BYTES);
        assert_eq!(pieces(std::slice::from_ref(&large))[1].as_ptr(), large.data.as_ptr());
    }

    #[test]
    fn a_stream_message_has_error_and_end() {
        let response = ResponseMessage {
            model_name: "m",
            id: "7",
            parameters: &[("k".to_owned(), Parameter::Double(1.5))],
            final_response: Some(true),
            ..Default::default()
        };
        let message = StreamMessage { error: "broken", response };
        let mut wire = BytesMut::new();
        message.write(&mut wire, |_| panic!("nothing is large"));
        assert_eq!(wire.len(), message.encoded_len());
        let read = ModelStreamInferResponse::decode(wire.freeze()).unwrap();
        let response = read.infer_response.unwrap();
        assert_eq!((read.error_message.as_str(), response.id.as_str()), ("broken", "7"));
        assert_eq!(response.parameters.len(), 2);
        assert!(response.parameters.contains_key(FINAL_RESPONSE) && response.model_version.is_empty());
        let nothing = StreamMessage::default();
        wire = BytesMut::new();
        nothing.write(&mut wire, |_| panic!("nothing is large"));
        assert_eq!(ModelStreamInferResponse::decode(wire.freeze()).unwrap().infer_response, Some(Default::default()));
    }
}
