//! Taking large tensors out of a request message while it arrives, so that each can be received at a place of its own.

use bytes::{Bytes, BytesMut};
use prost::encoding::decode_varint;
use smallvec::SmallVec;

use super::inference::ModelInferRequest;
use super::records::is_misread;
use crate::limits::GRPC_MAX_FIELDS;

/// Field numbers of `parameters` and `raw_input_contents` in `ModelInferRequest`.
const PARAMETERS: u64 = 4;
const RAW_INPUT_CONTENTS: u64 = 7;

/// What stands in the message in the place of a tensor that was taken out: the field, empty.
const EMPTY_CONTENTS: [u8; 2] = [(RAW_INPUT_CONTENTS << 3 | 2) as u8, 0];

/// Longest beginning of a field in bytes: its key and a number, each a varint.
const LONGEST_HEAD: usize = 20;

/// Where tensors go.
pub trait TensorSink {
    /// A tensor of so many bytes comes next; false leaves it in the message.
    fn begin(&mut self, length: usize) -> bool;

    /// The next bytes of the tensor that was begun last.
    fn extend(&mut self, bytes: &[u8]);
}

/// A serialized `ModelInferRequest` of known length that arrives in pieces.
#[derive(Debug)]
pub struct Splitter {
    /// Bytes that are still to come.
    left: usize,
    /// The message without the tensors that were taken out.
    message: BytesMut,
    at: At,
    head: SmallVec<[u8; LONGEST_HEAD]>,
    /// Fields that may still come: what stands behind more of them stays in the message, which its parser refuses.
    fields_left: usize,
    /// Raw contents seen so far, and which of them were taken out.
    contents: usize,
    separated: SmallVec<[usize; 4]>,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug)]
enum At {
    /// The key of a field, and behind it the length or the number.
    Head,
    /// Content of a field that stays, so many bytes of it.
    Content(usize),
    /// A tensor that is taken out, so many bytes of it.
    Tensor(usize),
    /// Something that is not understood: the parser of the message says what is wrong with it.
    Rest,
}

/// A message of which tensors were taken out: all of it but them, and which of the raw contents they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Skeleton {
    /// The message; raw contents that were taken out are empty in it.
    pub message: Bytes,
    /// Positions among the raw contents, in the order in which the sink was given them.
    pub separated: SmallVec<[usize; 4]>,
}

impl Splitter {
    /// A message of `length` bytes, of which none has come.
    pub fn new(length: usize) -> Splitter {
        Splitter {
            left: length,
            message: BytesMut::new(),
            at: At::Head,
            head: SmallVec::new(),
            fields_left: GRPC_MAX_FIELDS,
            contents: 0,
            separated: SmallVec::new(),
        }
    }

    /// Bytes that are still to come.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Bytes that are copied so that there is room for so many more.
    pub fn moved_by(&self, bytes: usize) -> usize {
        if self.message.len() + bytes > self.message.capacity() { self.message.len() } else { 0 }
    }

    /// Takes the next piece, which is no longer than what is still to come.
    pub fn take(&mut self, mut piece: &[u8], sink: &mut impl TensorSink) {
        while let Some(&first) = piece.first() {
            let count = match self.at {
                At::Head => {
                    self.head.push(first);
                    1
                }
                At::Content(left) | At::Tensor(left) => left.min(piece.len()),
                At::Rest => piece.len(),
            };
            let (bytes, rest) = piece.split_at(count);
            piece = rest;
            self.left -= count;
            self.at = match self.at {
                At::Head => self.read_head(sink),
                At::Content(left) => {
                    self.message.extend_from_slice(bytes);
                    content(left - count)
                }
                At::Tensor(left) => {
                    sink.extend(bytes);
                    if left == count { At::Head } else { At::Tensor(left - count) }
                }
                At::Rest => {
                    self.message.extend_from_slice(bytes);
                    At::Rest
                }
            };
        }
    }

    /// What follows the head of a field, if that is complete.
    fn read_head(&mut self, sink: &mut impl TensorSink) -> At {
        let mut rest = &self.head[..];
        // A varint ends with the first byte whose highest bit is not set.
        if self.head.last().is_some_and(|&last| last >= 0x80) {
            return if self.head.len() < LONGEST_HEAD { At::Head } else { self.keep_head(At::Rest) };
        }
        let Ok(key) = decode_varint(&mut rest) else { return self.keep_head(At::Rest) };
        match (key >> 3, key & 7) {
            (field, kind) if is_misread(field, kind, Some(PARAMETERS)) => self.keep_head(At::Rest),
            (_, 0 | 2) if rest.is_empty() => At::Head,
            (_, 0) => self.keep_head(At::Head),
            (_, 1) => self.keep_head(At::Content(8)),
            (_, 5) => self.keep_head(At::Content(4)),
            (field, 2) => match decode_varint(&mut rest).ok().and_then(|length| usize::try_from(length).ok()) {
                Some(length) if field == RAW_INPUT_CONTENTS => self.begin_contents(length, sink),
                Some(length) => self.keep_head(content(length)),
                None => self.keep_head(At::Rest),
            },
            _ => self.keep_head(At::Rest),
        }
    }

    fn begin_contents(&mut self, length: usize, sink: &mut impl TensorSink) -> At {
        let position = self.contents;
        self.contents += 1;
        // A tensor that is longer than the message never becomes complete.
        if length == 0 || length > self.left || !sink.begin(length) {
            return self.keep_head(content(length));
        }
        self.separated.push(position);
        self.head.clear();
        self.message.extend_from_slice(&EMPTY_CONTENTS);
        At::Tensor(length)
    }

    /// The head belongs to the message.
    fn keep_head(&mut self, next: At) -> At {
        self.message.extend_from_slice(&self.head);
        self.head.clear();
        self.fields_left = self.fields_left.saturating_sub(1);
        if self.fields_left > 0 { next } else { At::Rest }
    }

    /// The message without its tensors.
    pub fn finish(mut self) -> Skeleton {
        self.keep_head(At::Rest);
        Skeleton { message: self.message.freeze(), separated: self.separated }
    }
}

impl Skeleton {
    /// Puts tensors into their places in the message that was parsed, in the order in which the sink was given them.
    pub fn fill(&self, message: &mut ModelInferRequest, tensors: impl IntoIterator<Item = Bytes>) {
        for (&position, tensor) in self.separated.iter().zip(tensors) {
            if let Some(contents) = message.raw_input_contents.get_mut(position) {
                *contents = tensor;
            }
        }
    }
}

fn content(left: usize) -> At {
    if left == 0 { At::Head } else { At::Content(left) }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use prost::Message;

    use super::*;
    use crate::codec::proto::inference::model_infer_request::InferInputTensor;

    /// Takes tensors from a length on.
    struct Sink {
        from: usize,
        tensors: Vec<Vec<u8>>,
    }

    impl TensorSink for Sink {
        fn begin(&mut self, length: usize) -> bool {
            let wanted = length >= self.from;
            if wanted {
                self.tensors.push(Vec::new());
            }
            wanted
        }

        fn extend(&mut self, bytes: &[u8]) {
            self.tensors.last_mut().unwrap().extend_from_slice(bytes);
        }
    }

    fn split(wire: &[u8], piece_bytes: usize, from: usize) -> (Skeleton, Vec<Vec<u8>>) {
        let mut sink = Sink { from, tensors: Vec::new() };
        let mut splitter = Splitter::new(wire.len());
        wire.chunks(piece_bytes).for_each(|piece| splitter.take(piece, &mut sink));
        assert_eq!(splitter.left(), 0);
        (splitter.finish(), sink.tensors)
    }

    fn message(contents: Vec<Vec<u8>>) -> ModelInferRequest {
        let input = |shape: i64| InferInputTensor { name: "X".to_owned(), shape: vec![shape], ..Default::default() };
        ModelInferRequest {
            model_name: "m".to_owned(),
            inputs: (0..contents.len() as i64).map(|index| input(index * 1000)).collect(),
            raw_input_contents: contents.into_iter().map(Bytes::from).collect(),
            ..Default::default()
        }
    }

    #[test]
    fn large_tensors_are_separated_and_small_ones_stay() {
        let request = message(vec![vec![1; 300], vec![2; 10], vec![], vec![3; 100]]);
        let wire = request.encode_to_vec();
        for piece_bytes in 1..=wire.len() {
            let (skeleton, tensors) = split(&wire, piece_bytes, 100);
            assert_eq!(skeleton.separated[..], [0, 3]);
            assert!(skeleton.message.len() < 80);
            let mut read = ModelInferRequest::decode(skeleton.message.clone()).unwrap();
            skeleton.fill(&mut read, tensors.into_iter().map(Bytes::from));
            assert_eq!(read, request);
        }
    }

    #[test]
    fn a_tensor_that_is_longer_than_its_message_is_left_in_it() {
        let wire = [&[0x3a, 0xff, 0x7f][..], &[9; 50]].concat();
        let (skeleton, tensors) = split(&wire, 7, 1);
        assert_eq!((&skeleton.message[..], tensors.len()), (&wire[..], 0));
    }

    proptest! {
        #[test]
        fn any_request_is_the_same_however_it_is_split(
            contents in vec(vec(any::<u8>(), 0..300), 0..5),
            piece_bytes in 1..400_usize,
            from in 0..300_usize,
        ) {
            let request = message(contents);
            let (skeleton, tensors) = split(&request.encode_to_vec(), piece_bytes, from);
            let mut read = ModelInferRequest::decode(skeleton.message.clone()).unwrap();
            skeleton.fill(&mut read, tensors.into_iter().map(Bytes::from));
            prop_assert_eq!(read, request);
        }

        #[test]
        fn any_bytes_are_a_message_to_be_judged_by_its_parser(wire in vec(any::<u8>(), 0..200), piece_bytes in 1..20_usize) {
            let (skeleton, tensors) = split(&wire, piece_bytes, 10);
            let whole = ModelInferRequest::decode(&wire[..]);
            let mut parsed = ModelInferRequest::decode(skeleton.message.clone());
            if let Ok(message) = &mut parsed {
                skeleton.fill(message, tensors.into_iter().map(Bytes::from));
            }
            prop_assert_eq!(parsed.ok(), whole.ok());
        }
    }
}
