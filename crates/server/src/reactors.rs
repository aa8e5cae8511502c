//! The event loops of the network threads, for whoever has to wait for something there.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::Handle;

/// The event loops, known from the moment the threads run.
#[derive(Default)]
pub struct Reactors {
    handles: OnceLock<Vec<Handle>>,
    next: AtomicUsize,
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
}
