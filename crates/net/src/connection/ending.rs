//! How far the end of a connection has come, as its calls see it.

use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Waker;

use parking_lot::Mutex;
use slab::Slab;

use crate::phase::Phase;

/// The phase of the network that a connection has seen.
#[derive(Default)]
pub struct Ending {
    phase: AtomicU8,
    /// Calls that tasks of their own drive, which a cut has to wake.
    waiting: Mutex<Slab<Waker>>,
}

impl Ending {
    /// Sees a phase.
    pub fn reach(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
        if phase >= Phase::Cut {
            self.waiting.lock().iter().for_each(|(_, waker)| waker.wake_by_ref());
        }
    }

    /// Whether each answer says that the connection ends.
    #[inline]
    pub fn is_announced(&self) -> bool {
        self.has_reached(Phase::Draining)
    }

    /// Whether calls that begin now are refused.
    #[inline]
    pub fn is_refusing(&self) -> bool {
        self.has_reached(Phase::Refusing)
    }

    /// Whether calls without an answer get an error.
    #[inline]
    pub fn is_cut(&self) -> bool {
        self.has_reached(Phase::Cut)
    }

    #[inline]
    fn has_reached(&self, phase: Phase) -> bool {
        self.phase.load(Ordering::Relaxed) >= phase as u8
    }

    /// Wakes a task at a cut, until it is forgotten by the key.
    pub fn register(&self, task: &Waker) -> usize {
        self.waiting.lock().insert(task.clone())
    }

    /// Forgets a task.
    pub fn forget(&self, key: usize) {
        self.waiting.lock().remove(key);
    }
}

/// A response body that can be ended before the model has produced all of it.
pub trait CutOff {
    /// Ends the body with the reason in the words of its protocol; it is ready from now on.
    fn cut_off(&mut self);
}
