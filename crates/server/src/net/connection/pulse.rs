//! What a connection has done so far, counted without a clock: whoever watches it looks at the counts now and then.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The counts of one connection.
///
/// All of them are changed by the connection's own thread alone, so that a load and a store do for an addition.
#[derive(Default)]
pub struct Pulse {
    received: AtomicU64,
    begun: AtomicU64,
    ended: AtomicU64,
    received_at_end: AtomicU64,
    /// Whose turn it is, as the answer has shown that was asked last.
    turn: AtomicU8,
}

/// Whose turn it is to let an answer go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Turn {
    /// Nobody has asked.
    Unknown,
    /// The client's, to take what there is.
    Client,
    /// The model's, to give more.
    Model,
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
        Call { pulse: Arc::clone(self) }
    }

    /// Whose turn it is, and nobody's from here on.
    #[inline]
    pub fn take_turn(&self) -> Turn {
        let turn = self.turn.load(Ordering::Relaxed);
        self.turn.store(Turn::Unknown as u8, Ordering::Relaxed);
        match turn {
            turn if turn == Turn::Client as u8 => Turn::Client,
            turn if turn == Turn::Model as u8 => Turn::Model,
            _ => Turn::Unknown,
        }
    }

    /// The counts now.
    pub fn sample(&self) -> Sample {
        let value = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Sample {
            received: value(&self.received),
            begun: value(&self.begun),
            ended: value(&self.ended),
            received_at_end: value(&self.received_at_end),
        }
    }
}

impl Call {
    /// Notes whose turn it is.
    #[inline]
    pub fn give_turn(&self, turn: Turn) {
        self.pulse.turn.store(turn as u8, Ordering::Relaxed);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
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
        let call = pulse.begin();
        assert!(pulse.sample().is_busy());
        pulse.receive(5);
        drop(call);
        let expected = Sample { received: 15, begun: 1, ended: 1, received_at_end: 15 };
        assert_eq!(pulse.sample(), expected);
    }

    #[test]
    fn a_turn_is_told_once() {
        let pulse = Arc::new(Pulse::default());
        pulse.begin().give_turn(Turn::Client);
        assert_eq!([pulse.take_turn(), pulse.take_turn()], [Turn::Client, Turn::Unknown]);
    }
}
