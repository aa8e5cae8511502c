//! The activity of a connection, counted without a clock: its watchdog samples the counts at intervals.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use alipes_stats::access::AccessRecord;

use super::ending::Ending;
use crate::idle::IdleClock;

/// The counts of one connection.
///
/// The connection's own thread alone changes them, so that a load and a store suffice for an addition. Any may read.
#[derive(Default)]
pub struct Activity {
    received: AtomicU64,
    begun: AtomicU64,
    ended: AtomicU64,
    received_at_end: AtomicU64,
    turn: AtomicU32,
    /// Who must act next for the response that was polled last.
    next_actor: AtomicU8,
    /// How far its end has come.
    pub ending: Ending,
    /// The clock that knows of the calls of all connections, where the server ends once it is idle.
    idle: Option<Arc<IdleClock>>,
}

/// Who must act next for a response to make progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum NextActor {
    /// No response was polled.
    Unknown,
    /// The client, which must read the data at hand.
    Client,
    /// The model, which must produce more.
    Model,
}

/// The counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Bytes received.
    pub received: u64,
    /// Calls begun.
    pub begun: u64,
    /// Calls ended: answered, or cancelled by the client.
    pub ended: u64,
    /// Bytes received when the last call ended.
    pub received_at_end: u64,
}

impl Sample {
    /// Whether a call is open.
    pub fn is_busy(&self) -> bool {
        self.begun > self.ended
    }
}

/// One call, from its head to the end of its response.
pub struct Call {
    activity: Arc<Activity>,
    /// Its record for a verbose log, which is written once the call has ended.
    record: Option<Arc<AccessRecord>>,
}

impl Activity {
    /// The counts of a connection whose calls count for a server that ends once it is idle.
    pub fn of_server(idle: Option<Arc<IdleClock>>) -> Activity {
        Activity { idle, ..Activity::default() }
    }

    /// Counts received bytes.
    #[inline]
    pub fn receive(&self, bytes: usize) {
        add(&self.received, bytes as u64);
    }

    /// Begins a call; it ends when it is dropped.
    #[inline]
    pub fn begin(self: &Arc<Self>) -> Call {
        add(&self.begun, 1);
        if let Some(idle) = &self.idle {
            idle.begin();
        }
        Call { activity: Arc::clone(self), record: None }
    }

    /// Begins a turn: the connection is polled, and others are once it has used up its quantum.
    #[inline]
    pub fn begin_turn(&self) {
        self.turn.store(self.turn().wrapping_add(1), Ordering::Relaxed);
    }

    /// The number of the turn.
    #[inline]
    pub fn turn(&self) -> u32 {
        self.turn.load(Ordering::Relaxed)
    }

    /// Takes and clears who must act next.
    #[inline]
    pub fn take_next_actor(&self) -> NextActor {
        let actor = self.next_actor.load(Ordering::Relaxed);
        self.next_actor.store(NextActor::Unknown as u8, Ordering::Relaxed);
        match actor {
            actor if actor == NextActor::Client as u8 => NextActor::Client,
            actor if actor == NextActor::Model as u8 => NextActor::Model,
            _ => NextActor::Unknown,
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
    /// Has the end of the call written to the log.
    pub fn record_in(&mut self, record: AccessRecord) {
        self.record = Some(Arc::new(record));
    }

    /// The record of the call, where the log is verbose.
    #[inline]
    pub fn record(&self) -> Option<&Arc<AccessRecord>> {
        self.record.as_ref()
    }

    /// How far the end of its connection has come.
    #[inline]
    pub fn ending(&self) -> &Ending {
        &self.activity.ending
    }

    /// Sets who must act next.
    #[inline]
    pub fn set_next_actor(&self, actor: NextActor) {
        self.activity.next_actor.store(actor as u8, Ordering::Relaxed);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        add(&self.activity.ended, 1);
        self.activity.received_at_end.store(self.activity.received.load(Ordering::Relaxed), Ordering::Relaxed);
        if let Some(idle) = &self.activity.idle {
            idle.end(alipes_clock::now());
        }
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
    fn a_call_is_counted_from_its_head_to_the_end_of_its_response() {
        let activity = Arc::new(Activity::default());
        activity.receive(10);
        let call = activity.begin();
        assert!(activity.sample().is_busy());
        activity.receive(5);
        drop(call);
        let expected = Sample { received: 15, begun: 1, ended: 1, received_at_end: 15 };
        assert_eq!(activity.sample(), expected);
    }

    #[test]
    fn the_next_actor_is_reported_once() {
        let activity = Arc::new(Activity::default());
        activity.begin().set_next_actor(NextActor::Client);
        let actors = [activity.take_next_actor(), activity.take_next_actor()];
        assert_eq!(actors, [NextActor::Client, NextActor::Unknown]);
    }
}
