//! Reused bytes at the alignment that vector instructions like best.

use std::{mem, slice};

use alipes_protocol::copies;

/// A cache line: the unit of growth, and what gives the buffer its alignment.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Bytes that start at a multiple of 64. Clearing keeps the memory.
#[derive(Default)]
pub(super) struct AlignedBuffer {
    lines: Vec<Line>,
    len: usize,
}

impl AlignedBuffer {
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends `bytes`.
    ///
    /// # Panics
    ///
    /// If more than `isize::MAX` bytes would be held, which no memory can.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        let len = self.len.checked_add(bytes.len()).expect("a batch fits the address space");
        let lines = len.div_ceil(size_of::<Line>());
        if lines > self.lines.len() {
            self.lines.resize(lines.max(self.lines.len() * 2), Line([0; 64]));
        }
        let begin = mem::replace(&mut self.len, len);
        copies::note(bytes.len());
        self.whole()[begin..len].copy_from_slice(bytes);
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: lines are arrays of initialised bytes without padding, and `len` never exceeds their sum.
        unsafe { slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }

    fn whole(&mut self) -> &mut [u8] {
        // SAFETY: lines are arrays of initialised bytes without padding, borrowed as long as the slice.
        unsafe { slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.lines.len() * size_of::<Line>()) }
    }
}
