//! Tensors on their way through the link.

use alipes_protocol::{Datatype, Shape};
use bytes::Bytes;

/// Which tensor: by its position in the model's declaration, which costs two bytes, or by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorName<'a> {
    /// Position among the declared inputs or outputs; below [`TensorName::NAMED`].
    Index(u16),
    /// A name that the declaration does not have.
    Name(&'a str),
}

impl TensorName<'_> {
    /// Stands for "a name follows" where a frame has an index.
    pub(crate) const NAMED: u16 = u16::MAX;
}

/// A [`TensorName`] with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedTensorName {
    /// Position among the declared inputs or outputs.
    Index(u16),
    /// A name that the declaration does not have.
    Name(String),
}

/// A tensor that the server writes for the worker.
#[derive(Clone, Copy, Debug)]
pub struct TensorRef<'a> {
    /// Which one.
    pub name: TensorName<'a>,
    /// Element type.
    pub datatype: Datatype,
    /// Sizes.
    pub shape: &'a [i64],
    /// Passed by offset where it lies in the request arena already, else copied there once.
    pub data: &'a Bytes,
}

/// A tensor that the worker sees in the request arena.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewedTensor {
    /// Which one.
    pub name: OwnedTensorName,
    /// Element type.
    pub datatype: Datatype,
    /// Sizes.
    pub shape: Shape,
    /// Where its bytes begin in the request arena; checked to lie in it.
    pub offset: u64,
    /// How many bytes.
    pub len: usize,
}
