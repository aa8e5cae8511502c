//! How a document is read: as which release of Triton reads it, and what that may take, bytes of text and of a tensor,
//! and memory, which is asked for before it is used.

use std::borrow::Cow;
use std::cell::Cell;

use super::value::Value;
use crate::{InferError, TritonRelease};

/// Most bytes that a byte of a text takes while it is read: a replacement character where it is no UTF-8, beside the
/// text without its escapes, which is there twice where it is looked up.
const BYTES_PER_BYTE_OF_TEXT: usize = 5;

/// Says whether all the memory that is taken then, in bytes, may be; an error says why not.
pub type Memory<'a> = dyn Fn(usize) -> Result<(), InferError> + 'a;

/// How one request is read.
#[derive(Clone, Copy)]
pub struct DecodeOptions<'a> {
    /// Largest JSON text, and largest tensor from it, in bytes.
    pub max_input_bytes: usize,
    /// Asked before memory is taken, where it has to be. The text itself does not count.
    pub memory: Option<&'a Memory<'a>>,
    /// The release whose refusals are given.
    pub release: TritonRelease,
}

impl From<usize> for DecodeOptions<'_> {
    /// So many bytes of text and of each tensor, any memory, and the latest release.
    fn from(max_input_bytes: usize) -> Self {
        DecodeOptions { max_input_bytes, memory: None, release: TritonRelease::default() }
    }
}

/// What a decoder knows about the request it reads.
#[derive(Clone, Copy)]
pub struct DecodeContext<'a> {
    /// Named in error texts.
    pub model: &'a str,
    /// How it is read.
    pub options: DecodeOptions<'a>,
    /// Bytes that were asked for so far.
    pub reserved: &'a Cell<usize>,
}

impl DecodeContext<'_> {
    /// Whether memory is to be asked for, and so to be measured first.
    pub fn asks_for_memory(&self) -> bool {
        self.options.memory.is_some()
    }

    /// Asks for memory.
    ///
    /// # Errors
    ///
    /// Why it cannot be had.
    pub fn reserve(&self, bytes: usize) -> Result<(), InferError> {
        let Some(memory) = self.options.memory else { return Ok(()) };
        self.reserved.set(self.reserved.get().saturating_add(bytes));
        memory(self.reserved.get())
    }

    /// Asks for the memory of texts that are this long where they stand.
    ///
    /// # Errors
    ///
    /// As for [`reserve`](Self::reserve).
    pub fn reserve_text(&self, length: usize) -> Result<(), InferError> {
        self.reserve(BYTES_PER_BYTE_OF_TEXT * length)
    }

    /// A string as text, whose memory is asked for first; what is no UTF-8 in it is replaced.
    ///
    /// # Errors
    ///
    /// This is no string; as for [`reserve`](Self::reserve).
    pub fn text<'v>(&self, value: Value<'v>) -> Result<Cow<'v, str>, InferError> {
        self.reserve_text(value.len())?;
        value.as_text()
    }
}
