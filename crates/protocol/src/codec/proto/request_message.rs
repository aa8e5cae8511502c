//! A request as the bytes of its message, for those who ask.

use bytes::{Bytes, BytesMut};

use super::write::{
    begin_nested, described_len, entry_len, nested_len, text_len, write_described, write_entry_of, write_text,
};
use crate::Parameter;

/// An input of a [`RequestMessage`].
#[derive(Clone, Copy, Debug)]
pub struct MessageInput<'a> {
    /// Its name.
    pub name: &'a str,
    /// Name of its datatype.
    pub datatype: &'a str,
    /// Its shape.
    pub shape: &'a [i64],
    /// Where its elements lie, if not in the message.
    pub parameters: &'a [(String, Parameter)],
    /// Its elements; `None` where its parameters name a region of shared memory.
    pub data: Option<&'a [u8]>,
}

/// An output that a [`RequestMessage`] asks for.
#[derive(Clone, Copy, Debug)]
pub struct MessageOutput<'a> {
    /// Its name.
    pub name: &'a str,
    /// In what form, or where it is wanted.
    pub parameters: &'a [(String, Parameter)],
}

/// What a `ModelInferRequest` says. Inputs leave as raw contents.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestMessage<'a> {
    /// The model.
    pub model_name: &'a str,
    /// Its version as text; empty leaves the choice to the server.
    pub model_version: &'a str,
    /// The request's id; empty for none.
    pub id: &'a str,
    /// Parameters, those of the protocol among them.
    pub parameters: &'a [(String, Parameter)],
    /// The inputs.
    pub inputs: &'a [MessageInput<'a>],
    /// The wanted outputs; none asks for all.
    pub outputs: &'a [MessageOutput<'a>],
}

impl RequestMessage<'_> {
    /// Bytes of the message.
    pub fn encoded_len(&self) -> usize {
        let inputs = self.inputs.iter().map(|input| nested_len(input_len(input)));
        let outputs = self.outputs.iter().map(|output| nested_len(output_len(output)));
        let data = self.inputs.iter().filter_map(|input| input.data).map(|data| nested_len(data.len()));
        text_len(self.model_name)
            + text_len(self.model_version)
            + text_len(self.id)
            + entries_len(self.parameters)
            + inputs.sum::<usize>()
            + outputs.sum::<usize>()
            + data.sum::<usize>()
    }

    /// Appends the message to the buffer, all of it copied.
    pub fn write(&self, buffer: &mut BytesMut) {
        self.write_with(buffer, |_, data, buffer| buffer.extend_from_slice(data));
    }

    /// The message behind `front` as pieces, in which the elements of each input stand for themselves: `owned` gives
    /// those of an input, by its number, or `None` where they are better copied.
    pub fn pieces(&self, front: &[u8], owned: impl Fn(usize) -> Option<Bytes>) -> Vec<Bytes> {
        let lent = |index: usize, data: &[u8]| owned(index).filter(|bytes| bytes.len() == data.len());
        let mut pieces = Vec::new();
        let mut buffer = BytesMut::with_capacity(front.len() + self.head_len() + 16);
        buffer.extend_from_slice(front);
        self.write_with(&mut buffer, |index, data, buffer| match lent(index, data) {
            None => buffer.extend_from_slice(data),
            Some(bytes) => {
                pieces.push(buffer.split().freeze());
                pieces.push(bytes);
            }
        });
        if !buffer.is_empty() {
            pieces.push(buffer.freeze());
        }
        pieces
    }

    /// Bytes of the message without its elements.
    fn head_len(&self) -> usize {
        self.encoded_len() - self.inputs.iter().filter_map(|input| input.data).map(<[u8]>::len).sum::<usize>()
    }

    fn write_with(&self, buffer: &mut BytesMut, mut data: impl FnMut(usize, &[u8], &mut BytesMut)) {
        write_text(1, self.model_name, buffer);
        write_text(2, self.model_version, buffer);
        write_text(3, self.id, buffer);
        write_entries(4, self.parameters, buffer);
        for input in self.inputs {
            begin_nested(5, input_len(input), buffer);
            write_described(input.name, input.datatype, input.shape, buffer);
            write_entries(4, input.parameters, buffer);
        }
        for output in self.outputs {
            begin_nested(6, output_len(output), buffer);
            write_text(1, output.name, buffer);
            write_entries(2, output.parameters, buffer);
        }
        for (index, input) in self.inputs.iter().enumerate() {
            if let Some(bytes) = input.data {
                begin_nested(7, bytes.len(), buffer);
                data(index, bytes, buffer);
            }
        }
    }
}

fn input_len(input: &MessageInput<'_>) -> usize {
    described_len(input.name, input.datatype, input.shape) + entries_len(input.parameters)
}

fn output_len(output: &MessageOutput<'_>) -> usize {
    text_len(output.name) + entries_len(output.parameters)
}

fn entries_len(parameters: &[(String, Parameter)]) -> usize {
    parameters.iter().map(|(key, value)| nested_len(entry_len(key, value))).sum()
}

fn write_entries(field: u32, parameters: &[(String, Parameter)], buffer: &mut BytesMut) {
    for (key, value) in parameters {
        write_entry_of(field, key, value, buffer);
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::super::decode_request;
    use super::super::inference::ModelInferRequest;
    use super::*;
    use crate::{CorrelationId, NoRegions, TritonRelease};

    fn parameters() -> Vec<(String, Parameter)> {
        vec![
            ("sequence_id".to_owned(), Parameter::Int64(-1)),
            ("sequence_start".to_owned(), Parameter::Bool(true)),
            ("rate".to_owned(), Parameter::Double(0.5)),
        ]
    }

    fn input<'a>(name: &'a str, shape: &'a [i64], data: &'a [u8]) -> MessageInput<'a> {
        MessageInput { name, datatype: "UINT8", shape, parameters: &[], data: Some(data) }
    }

    #[test]
    fn a_server_decodes_the_message() {
        let (parameters, data) = (parameters(), [1, 2, 3]);
        let inputs = [input("X", &[1, 3], &data), input("E", &[0], &[])];
        let outputs = [MessageOutput { name: "Y", parameters: &[] }];
        let message = RequestMessage {
            model_name: "m",
            model_version: "2",
            id: "7",
            parameters: &parameters,
            inputs: &inputs,
            outputs: &outputs,
        };
        let mut wire = BytesMut::new();
        message.write(&mut wire);
        assert_eq!(wire.len(), message.encoded_len());
        let read = ModelInferRequest::decode(wire.freeze()).unwrap();
        assert_eq!((read.model_name.as_str(), read.model_version.as_str(), read.id.as_str()), ("m", "2", "7"));
        let request = decode_request(read, TritonRelease::default(), &mut NoRegions).unwrap();
        assert_eq!(request.sequence.correlation_id, CorrelationId::Number(u64::MAX));
        assert_eq!(request.parameters, [("rate".to_owned(), Parameter::Double(0.5))]);
        assert_eq!((request.inputs[0].data.as_ref(), request.inputs[1].data.len()), (&data[..], 0));
        assert_eq!(request.outputs[0].name, "Y");
    }

    #[test]
    fn the_pieces_are_the_message_and_what_is_lent_is_not_copied() {
        let (small, large) = (Bytes::from_static(&[1, 2]), Bytes::from(vec![9; 1 << 16]));
        let inputs = [input("S", &[2], &small), input("L", &[1 << 16], &large)];
        let message = RequestMessage { model_name: "m", inputs: &inputs, ..Default::default() };
        let pieces = message.pieces(b"<", |index| (index == 1).then(|| large.clone()));
        let mut wire = BytesMut::from(&b"<"[..]);
        message.write(&mut wire);
        assert_eq!(pieces.concat(), wire);
        assert_eq!(pieces[1].as_ptr(), large.as_ptr());
    }
}
