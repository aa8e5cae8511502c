//! Visits: requests that read or write the state of a sequence between two of its requests, and execute nothing.

use alipes_protocol::Shape;
use bytes::Bytes;

/// A tensor that the server keeps for a sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct StateTensor {
    /// Sizes, with the batch dimension where the model batches.
    pub shape: Shape,
    /// Row-major bytes.
    pub data: Bytes,
}

/// What a visit does with the states of its sequence.
#[derive(Clone, Debug, PartialEq)]
pub enum Visit {
    /// Answers with them, as bytes.
    Take,
    /// Replaces them.
    Put(Box<[StateTensor]>),
    /// Ends the sequence.
    End,
}
