//! Large tensors of a request, received where the workers of its model see them.

use std::sync::Arc;

use alipes_link::RequestArena;
use alipes_net::aligned::AlignedBytes;
use alipes_protocol::codec::proto::inference::ModelInferRequest;
use alipes_protocol::codec::proto::{Skeleton, Splitter, TensorSink};
use bytes::Bytes;
use smallvec::SmallVec;

/// A tensor from this size on, in bytes, is received at a place of its own; a smaller one is copied together with the
/// request later, which costs less than a place.
const LARGE_TENSOR_BYTES: usize = 16 * 1024;

/// Large tensors that were taken out of a message, and the message without them.
#[derive(Default)]
pub(super) struct SeparatedTensors {
    skeleton: Skeleton,
    tensors: SmallVec<[Bytes; 2]>,
}

impl SeparatedTensors {
    /// Puts the tensors back into the message that was parsed.
    pub(super) fn fill(self, message: &mut ModelInferRequest) {
        self.skeleton.fill(message, self.tensors);
    }
}

/// A message that arrives in pieces, its large tensors in memory that workers see, everything else on the heap: the
/// server reads no meaning from what workers may change.
pub(super) struct Sorting {
    length: usize,
    splitter: Splitter,
    sink: Sink,
}

struct Sink {
    arena: Arc<RequestArena>,
    open: Option<AlignedBytes>,
    tensors: SmallVec<[Bytes; 2]>,
}

impl Sorting {
    /// A message of `length` bytes, of which none has been received.
    pub(super) fn begin(arena: Arc<RequestArena>, length: usize) -> Sorting {
        let sink = Sink { arena, open: None, tensors: SmallVec::new() };
        Sorting { length, splitter: Splitter::new(length), sink }
    }

    /// Bytes received.
    pub(super) fn arrived(&self) -> usize {
        self.length - self.left()
    }

    /// Bytes that are still to come.
    pub(super) fn left(&self) -> usize {
        self.splitter.left()
    }

    /// Bytes that are copied so that there is room for so many more.
    pub(super) fn moved_by(&self, bytes: usize) -> usize {
        self.sink.open.as_ref().map_or(0, |open| open.moved_by(bytes)) + self.splitter.moved_by(bytes)
    }

    pub(super) fn extend(&mut self, piece: &[u8]) {
        self.splitter.take(piece, &mut self.sink);
    }

    /// The message without its large tensors, and what completes it.
    pub(super) fn finish(mut self) -> (Bytes, SeparatedTensors) {
        self.sink.close();
        let skeleton = self.splitter.finish();
        (skeleton.message.clone(), SeparatedTensors { skeleton, tensors: self.sink.tensors })
    }
}

impl Sink {
    fn close(&mut self) {
        self.tensors.extend(self.open.take().map(AlignedBytes::freeze));
    }
}

impl TensorSink for Sink {
    fn begin(&mut self, length: usize) -> bool {
        let large = length >= LARGE_TENSOR_BYTES;
        if large {
            self.close();
            self.open = Some(AlignedBytes::for_workers(Arc::clone(&self.arena), length));
        }
        large
    }

    fn extend(&mut self, bytes: &[u8]) {
        if let Some(open) = &mut self.open {
            open.extend(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    #[test]
    fn large_tensors_lie_aligned_in_the_workers_memory_and_nothing_else_does() {
        let arena = RequestArena::create(1 << 30).unwrap();
        let sizes = [LARGE_TENSOR_BYTES + 1, 7, LARGE_TENSOR_BYTES * 9];
        let request = ModelInferRequest {
            model_name: "m".to_owned(),
            raw_input_contents: sizes.iter().map(|&size| vec![size as u8; size].into()).collect(),
            ..Default::default()
        };
        let wire = request.encode_to_vec();
        let mut sorting = Sorting::begin(Arc::clone(&arena), wire.len());
        wire.chunks(1000).for_each(|piece| sorting.extend(piece));
        assert_eq!(sorting.left(), 0);
        let (message, separated) = sorting.finish();
        assert!(arena.offset_of(&message).is_none());
        let mut read = ModelInferRequest::decode(message).unwrap();
        separated.fill(&mut read);
        assert_eq!(read, request);
        let places = read.raw_input_contents.iter().map(|tensor| arena.offset_of(tensor).map(|offset| offset % 64));
        assert_eq!(places.collect::<Vec<_>>(), [Some(0), None, Some(0)]);
        drop(read);
        assert_eq!(arena.used_bytes(), 0);
    }
}
