//! Memory of the request arena that a worker still looks at: inputs of requests that were answered, answers to its
//! calls.

use std::collections::HashMap;

use alipes_link::Placed;

use super::calls::Receipt;

/// Frames by their lease, and how much memory they hold.
#[derive(Default)]
pub struct Held {
    frames: HashMap<u64, (Placed, Option<Receipt>)>,
    bytes: usize,
}

impl Held {
    /// Keeps a frame until its lease is given back; then the callee learns that its response was consumed.
    pub fn keep(&mut self, lease: u64, frame: Placed, receipt: Option<Receipt>) {
        self.bytes += frame.bytes();
        self.frames.insert(lease, (frame, receipt));
    }

    /// The frame with this lease.
    pub fn get(&self, lease: u64) -> Option<&Placed> {
        self.frames.get(&lease).map(|(frame, _)| frame)
    }

    /// Frees a frame; gives the receipt to be dropped without any lock, since a callee may be an ensemble that goes on
    /// with it. A lease that is unknown is the worker's word for memory that it never had: nothing happens.
    #[must_use = "dropping a receipt tells the callee, who may do more than this thread's locks allow"]
    pub fn release(&mut self, lease: u64) -> Option<Receipt> {
        let (frame, receipt) = self.frames.remove(&lease)?;
        self.bytes -= frame.bytes();
        receipt
    }

    /// Memory that is held, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
