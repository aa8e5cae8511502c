//! What a connection has done so far, counted without a clock: whoever watches it looks at the counts now and then.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of one connection.
///
/// All of them are changed by the connection's own thread alone, so that a load and a store do for an addition.
#[derive(Default)]
pub struct Pulse {
    received: AtomicU64,
    begun: AtomicU64,
    ended: AtomicU64,
    received_at_end: AtomicU64,
    offered: AtomicU64,
    taken: AtomicU64,
}

/// The counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Bytes that have come.
    pub received: u64,
    /// Calls that have begun.
    pub begun: u64,
    /// Calls that are over: answered, or given up by the client.
    pub ended: u64,
    /// Bytes that had come when the last call ended.
    pub received_at_end: u64,
    /// Answers that wait to be taken off, not for a model.
    pub offered: u64,
    /// Pieces of answers that were taken off.
    pub taken: u64,
}

impl Sample {
    /// Whether a call is open.
    pub fn is_busy(&self) -> bool {
        self.begun > self.ended
    }
}

/// One call, from its head to the end of its answer.
pub struct Call {
    pulse: Arc<Pulse>,
    offered: bool,
}

impl Pulse {
    /// Notes that bytes have come.
    #[inline]
    pub fn receive(&self, bytes: usize) {
        add(&self.received, bytes as u64);
    }

    /// Begins a call; it ends when it is dropped.
    #[inline]
    pub fn begin(self: &Arc<Self>) -> Call {
        add(&self.begun, 1);
        Call { pulse: Arc::clone(self), offered: false }
    }

    /// The counts now.
    pub fn sample(&self) -> Sample {
        let value = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Sample {
            received: value(&self.received),
            begun: value(&self.begun),
            ended: value(&self.ended),
            received_at_end: value(&self.received_at_end),
            offered: value(&self.offered),
            taken: value(&self.taken),
        }
    }
}

impl Call {
    /// Notes that there is something to take off, or that there is not.
    #[inline]
    pub fn offer(&mut self, offered: bool) {
        if self.offered != offered {
            self.offered = offered;
            add(&self.pulse.offered, if offered { 1 } else { u64::MAX });
        }
    }

    /// Notes that a piece of the answer was taken off.
    #[inline]
    pub fn take(&self) {
        add(&self.pulse.taken, 1);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.offer(false);
        add(&self.pulse.ended, 1);
        self.pulse.received_at_end.store(self.pulse.received.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

#[inline]
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_counted_from_its_head_to_the_end_of_its_answer() {
        let pulse = Arc::new(Pulse::default());
        pulse.receive(10);
        let mut call = pulse.begin();
        assert!(pulse.sample().is_busy());
        call.offer(true);
        call.offer(true);
        call.take();
        pulse.receive(5);
        assert_eq!(pulse.sample().offered, 1);
        drop(call);
        let expected = Sample { received: 15, begun: 1, ended: 1, received_at_end: 15, offered: 0, taken: 1 };
        assert_eq!(pulse.sample(), expected);
    }
}
