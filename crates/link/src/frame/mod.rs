//! Frames: the messages of the link as bytes. Little-endian, compact, and of one version: see `layout::VERSION`.
//!
//! A frame is a length, a description of that length, and the bytes of small tensors from the next 64-byte boundary on:
//!
//! ```text
//! u32 length | description … | padding | tensor | padding | tensor …
//! ```

pub(crate) mod answer;
pub(crate) mod call;
pub(crate) mod head;
pub(crate) mod mail;
pub(crate) mod message;
pub(crate) mod reader;
pub(crate) mod request;
pub(crate) mod tensor;
pub(crate) mod writer;

#[cfg(test)]
mod tests;

pub(crate) use reader::{Malformed, Reader};
pub(crate) use writer::Writer;

/// Tensors of a worker that are larger than this have a slot of their own and are lent; others are copied, twice at
/// 10 GB/s or more: less than the bookkeeping of a slot costs.
pub(crate) const INLINE_BYTES: usize = 64 * 1024;

/// Largest frame of a worker. Large tensors are not in it; files that are sent with a model to be loaded are.
pub(crate) const MAX_FRAME_BYTES: u64 = 1 << 30;

/// Most bytes of `BYTES` tensors beside the frame in one message. The server copies them, so that a message of a few
/// bytes that names the same gigabyte again and again must not be believed; and no response can carry more.
pub(crate) const MAX_PRIVATE_BYTES: u64 = 1 << 31;

/// Where tensors begin in a frame, and what their own beginnings are rounded up to.
pub(crate) const ALIGNMENT: usize = 64;
