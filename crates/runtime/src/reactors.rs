//! The event loops of the network threads, for code that has to wait for something on one of them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::Handle;

/// The event loops, known from the moment the threads run.
#[derive(Default)]
pub struct Reactors {
    handles: OnceLock<Vec<Handle>>,
    next: AtomicUsize,
    next_watch: AtomicUsize,
}

impl Reactors {
    /// Makes the event loops known, once.
    pub fn set(&self, handles: Vec<Handle>) {
        let _ = self.handles.set(handles);
    }

    /// One event loop, each in turn; none before the network threads run.
    pub fn pick(&self) -> Option<&Handle> {
        let handles = self.handles.get()?;
        handles.get(self.next.fetch_add(1, Ordering::Relaxed) % handles.len().max(1))
    }

    /// One of those event loops that watch worker processes: half of them, each in turn.
    ///
    /// Where models call each other, the event loops that watch their workers pass each call from one worker to the
    /// next. Where one event loop watches both workers, no other thread has to be woken, and none waits for a worker's
    /// locks.
    pub fn pick_watch(&self) -> Option<&Handle> {
        let handles = self.handles.get()?;
        let watching = handles.len().div_ceil(2).max(1);
        handles.get(self.next_watch.fetch_add(1, Ordering::Relaxed) % watching)
    }
}
