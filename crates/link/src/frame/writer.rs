//! Writing a frame.

use alipes_protocol::copies;
use smallvec::SmallVec;

use super::ALIGNMENT;

/// A frame being written: its description is collected, tensors are only noted, so that they are copied once, to
/// where the frame comes to lie.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    description: SmallVec<[u8; 512]>,
    tensors: SmallVec<[(usize, &'a [u8]); 8]>,
    data_len: usize,
}

impl<'a> Writer<'a> {
    pub fn new() -> Writer<'a> {
        let mut writer = Writer { description: SmallVec::new(), tensors: SmallVec::new(), data_len: 0 };
        writer.u32(0); // The length, once it is known.
        writer
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.description.extend_from_slice(bytes);
    }

    pub fn u8(&mut self, value: u8) {
        self.description.push(value);
    }

    pub fn bool(&mut self, value: bool) {
        self.u8(value.into());
    }

    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn i64(&mut self, value: i64) {
        self.bytes(&value.to_le_bytes());
    }

    /// How many items or bytes follow. A frame with more than 2^32 of them is too long, and no arena takes it.
    pub fn count(&mut self, count: usize) {
        self.u32(u32::try_from(count).unwrap_or(u32::MAX));
    }

    pub fn text(&mut self, text: &str) {
        self.count(text.len());
        self.bytes(text.as_bytes());
    }

    pub fn optional_text(&mut self, text: Option<&str>) {
        self.bool(text.is_some());
        if let Some(text) = text {
            self.text(text);
        }
    }

    /// Notes a tensor's bytes, and says where they will be, counted from the first tensor.
    pub fn tensor(&mut self, bytes: &'a [u8]) -> u64 {
        if bytes.is_empty() {
            return 0; // So that a frame without data ends with its description.
        }
        let offset = self.data_len.next_multiple_of(ALIGNMENT);
        self.tensors.push((offset, bytes));
        self.data_len = offset + bytes.len();
        offset as u64
    }

    /// Length of the description, with its own length.
    pub fn description_len(&self) -> usize {
        self.description.len()
    }

    /// Length of the whole frame.
    pub fn len(&self) -> usize {
        match self.data_len {
            0 => self.description.len(),
            len => data_start(self.description.len()) + len,
        }
    }

    /// Writes the frame to where it is to lie.
    ///
    /// # Panics
    ///
    /// If that is shorter than [`Writer::len`].
    pub fn write_to(&self, target: &mut [u8]) {
        let len = self.description.len();
        target[..len].copy_from_slice(&self.description);
        let written = u32::try_from(len).unwrap_or(u32::MAX);
        target[..4].copy_from_slice(&written.to_le_bytes());
        let data = data_start(len);
        for (offset, bytes) in &self.tensors {
            copies::note(bytes.len());
            target[data + offset..][..bytes.len()].copy_from_slice(bytes);
        }
    }
}

/// Where the first tensor begins in a frame with a description of this length.
pub(crate) const fn data_start(description_len: usize) -> usize {
    description_len.next_multiple_of(ALIGNMENT)
}
