//! Payloads that wait for the control plane: bounded by their bytes, so that no sink can hold the server's memory.

use std::collections::VecDeque;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use super::payload::Payload;

/// What a payload takes beside its tensors, roughly: an empty one must not wait for nothing.
const OVERHEAD_BYTES: u64 = 512;

/// Bounded queue of payloads.
#[derive(Default)]
pub(super) struct PayloadQueue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    max_bytes: u64,
}

#[derive(Default)]
struct Waiting {
    payloads: VecDeque<(Payload, u64)>,
    bytes: u64,
    dropped: u64,
    closed: bool,
}

impl PayloadQueue {
    pub(super) fn new(max_bytes: u64) -> PayloadQueue {
        PayloadQueue { max_bytes, ..PayloadQueue::default() }
    }

    /// Adds what `copy` makes, which is of so many bytes; counts it as dropped where there is no room, and copies
    /// nothing then.
    pub(super) fn push(&self, bytes: u64, copy: impl FnOnce() -> Payload) {
        let bytes = bytes.saturating_add(OVERHEAD_BYTES);
        {
            let mut waiting = self.waiting.lock();
            if waiting.closed || waiting.bytes.saturating_add(bytes) > self.max_bytes {
                waiting.dropped += 1;
                return;
            }
            waiting.bytes += bytes;
        }
        // Copied without the lock: another request need not wait for a large one.
        let payload = copy();
        self.waiting.lock().payloads.push_back((payload, bytes));
        self.changed.notify_one();
    }

    /// The next payload; none when the deadline passes, or when the queue is closed and all of it was taken.
    pub(super) fn next(&self, deadline: Instant) -> Option<Payload> {
        let mut waiting = self.waiting.lock();
        loop {
            if let Some((payload, bytes)) = waiting.payloads.pop_front() {
                waiting.bytes -= bytes;
                return Some(payload);
            }
            if waiting.closed || self.changed.wait_until(&mut waiting, deadline).timed_out() {
                return None;
            }
        }
    }

    /// Takes no more; what waits can still be taken.
    pub(super) fn close(&self) {
        self.waiting.lock().closed = true;
        self.changed.notify_all();
    }

    /// How many were dropped, and how many bytes wait.
    pub(super) fn counts(&self) -> (u64, u64) {
        let waiting = self.waiting.lock();
        (waiting.dropped, waiting.bytes)
    }
}
