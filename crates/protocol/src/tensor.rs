//! A tensor: name, datatype, shape and bytes.

use bytes::Bytes;
use compact_str::CompactString;

use crate::{Datatype, Shape};

/// A named tensor whose bytes are row-major and little-endian.
///
/// `BYTES` elements are laid out as in the binary tensor extension: a 32-bit length, then that many bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Name within the model; names up to 24 bytes live inline, so that a request costs no allocation for them.
    pub name: CompactString,
    /// Element type.
    pub datatype: Datatype,
    /// Sizes, with the batch dimension where the model batches.
    pub shape: Shape,
    /// A slice of the network buffer, of a batch's output or of a region: cloning it copies no data.
    pub data: Bytes,
}
