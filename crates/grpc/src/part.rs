//! A message of which some has come.

use alipes_net::aligned::AlignedBytes;
use alipes_protocol::InferError;
use alipes_service::offload::offload;
use bytes::Bytes;

use super::layout::Place;
use super::tensors::{SeparatedTensors, Sorting};

/// The received part of a message.
pub(super) enum Part {
    /// All of it on the heap.
    Heap {
        /// The bytes.
        received: AlignedBytes,
        /// How many there will be.
        length: usize,
    },
    /// Its large tensors in memory that workers see.
    // Boxed, since it is large and seldom.
    Workers(Box<Sorting>),
}

impl Part {
    /// The beginning of a message of `length` bytes.
    pub(super) fn begin(first: Bytes, length: usize, place: Place) -> Part {
        let mut part = match place {
            Place::Heap { aligned_at } => Part::Heap { received: AlignedBytes::new(length, aligned_at), length },
            Place::Workers(arena) => Part::Workers(Box::new(Sorting::begin(arena, length))),
        };
        part.push(first);
        part
    }

    /// Appends a piece.
    pub(super) fn push(&mut self, piece: Bytes) {
        match self {
            Part::Heap { received, .. } => received.push(piece),
            Part::Workers(sorting) => sorting.extend(&piece),
        }
    }

    /// Bytes that are copied so that there is room for so many more.
    pub(super) fn moved_by(&self, bytes: usize) -> usize {
        match self {
            Part::Heap { received, .. } => received.moved_by(bytes),
            Part::Workers(sorting) => sorting.moved_by(bytes),
        }
    }

    /// Bytes that are still to come.
    pub(super) fn left(&self) -> usize {
        match self {
            Part::Heap { received, length } => length - received.len(),
            Part::Workers(sorting) => sorting.left(),
        }
    }

    /// Bytes that it takes.
    pub(super) fn room(&self) -> usize {
        match self {
            Part::Heap { received, .. } => received.capacity(),
            Part::Workers(sorting) => sorting.arrived(),
        }
    }

    /// The message, and the tensors that were taken out of it.
    pub(super) fn finish(self) -> (Bytes, Option<Box<SeparatedTensors>>) {
        match self {
            Part::Heap { received, .. } => (received.freeze(), None),
            Part::Workers(sorting) => {
                let (bytes, separated) = sorting.finish();
                (bytes, Some(Box::new(separated)))
            }
        }
    }
}

/// The beginning of a message, and a piece for which there is no room yet.
pub(super) struct Growing {
    part: Part,
    piece: Bytes,
}

/// The beginning of a message in its new place, with the piece behind it.
pub(super) struct Grown(Part);

impl Grown {
    /// The message as far as it has come.
    pub(super) fn into_part(self) -> Part {
        self.0
    }
}

impl Growing {
    /// A part that has to move before it can take a piece.
    pub(super) fn new(part: Part, piece: Bytes) -> Growing {
        Growing { part, piece }
    }

    /// Moves it on another thread, since there is much of it.
    ///
    /// # Errors
    ///
    /// There is no memory for it.
    pub(super) async fn grow(self) -> Result<Grown, InferError> {
        let Growing { mut part, piece } = self;
        let grown = offload(move || {
            part.push(piece);
            Grown(part)
        });
        grown.await.ok_or_else(|| InferError::internal("there is no memory for the request message"))
    }
}
