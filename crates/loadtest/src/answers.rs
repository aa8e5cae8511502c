//! The responses to one request on a stream.

use std::rc::Rc;
use std::time::Instant;

use crate::waves::Wave;

/// Most responses to a request whose moments are kept; further ones are counted.
const MAX_MOMENTS: usize = 1 << 16;

/// The responses to one request on a stream, while they come. Its memory serves the next request too.
#[derive(Debug, Default)]
pub struct Answers {
    /// The wave that waits for the request, and for how many responses.
    awaited: Option<(u64, Rc<Wave>)>,
    moments: Vec<Instant>,
    count: u64,
    last: Option<Instant>,
    bytes: usize,
}

impl Answers {
    /// Forgets those of the last request.
    pub fn clear(&mut self) {
        self.moments.clear();
        (self.count, self.last, self.bytes) = (0, None, 0);
    }

    /// A wave waits for so many responses to the next request.
    pub fn await_for(&mut self, responses: u64, wave: Rc<Wave>) {
        self.awaited = Some((responses, wave));
    }

    /// The request is over, however many responses it had.
    pub fn end(&mut self) {
        if let Some((_, wave)) = self.awaited.take() {
            wave.arrived();
        }
    }

    /// A response with so many bytes came.
    pub fn add(&mut self, moment: Instant, bytes: usize) {
        if self.moments.len() < MAX_MOMENTS {
            self.moments.push(moment);
        }
        self.count += 1;
        self.last = Some(moment);
        self.bytes += bytes;
        if let Some((_, wave)) = self.awaited.take_if(|(responses, _)| *responses == self.count) {
            wave.arrived();
        }
    }

    /// When each of the first ones came.
    pub fn moments(&self) -> &[Instant] {
        &self.moments
    }

    /// When the first one came.
    pub fn first(&self) -> Option<Instant> {
        self.moments.first().copied()
    }

    /// When the last one came.
    pub fn last(&self) -> Option<Instant> {
        self.last
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
