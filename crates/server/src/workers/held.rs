//! Memory of the request arena that a worker still looks at: inputs of requests that were answered, answers to its calls.

use std::collections::HashMap;

use alipes_link::Placed;
use tokio::sync::OwnedSemaphorePermit;

/// Frames by their lease, and how much memory they hold.
#[derive(Default)]
pub struct Held {
    frames: HashMap<u64, (Placed, Option<OwnedSemaphorePermit>)>,
    bytes: usize,
}

impl Held {
    /// Keeps a frame, and what it occupies of a call's allowance, until its lease is given back.
    pub fn keep(&mut self, lease: u64, frame: Placed, permit: Option<OwnedSemaphorePermit>) {
        self.bytes += frame.bytes();
        self.frames.insert(lease, (frame, permit));
    }

    /// The frame with this lease.
    pub fn get(&self, lease: u64) -> Option<&Placed> {
        self.frames.get(&lease).map(|(frame, _)| frame)
    }

    /// Frees a frame. A lease that is unknown is the worker's word for memory that it never had: nothing happens.
    pub fn release(&mut self, lease: u64) {
        self.bytes -= self.frames.remove(&lease).map_or(0, |(frame, _)| frame.bytes());
    }

    /// Memory that is held, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Frees everything.
    pub fn clear(&mut self) {
        *self = Held::default();
    }
}
