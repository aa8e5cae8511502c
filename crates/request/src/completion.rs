//! The completion queue of a network thread: finished answers for the connections that the thread serves.
//!
//! Answers from another thread arrive one batch at a time, so a batch costs one wake-up rather than one per request.
//! The same wake-up serves the thread's run-to-completion queue, which the executor keeps beside this one.

use std::cell::RefCell;
use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::responder::Completion;

thread_local! {
    static CURRENT: RefCell<Option<Arc<CompletionQueue>>> = const { RefCell::new(None) };
}

/// The completion queue of the calling thread, where it is a network thread.
pub fn current() -> Option<Arc<CompletionQueue>> {
    CURRENT.with_borrow(Option::clone)
}

/// Whether the calling thread is a network thread.
pub fn is_network_thread() -> bool {
    CURRENT.with_borrow(Option::is_some)
}

/// Answers for one network thread, and its wake-up.
#[derive(Default)]
pub struct CompletionQueue {
    completed: Mutex<Vec<Completion>>,
    wakeup: Notify,
}

impl CompletionQueue {
    /// Opens the queue of the calling thread.
    pub fn open() -> Arc<CompletionQueue> {
        let queue = Arc::new(CompletionQueue::default());
        CURRENT.set(Some(Arc::clone(&queue)));
        queue
    }

    /// Closes the queue of the calling thread.
    pub fn close() {
        CURRENT.set(None);
    }

    /// Whether this is the calling thread's own queue.
    pub fn is_here(self: &Arc<Self>) -> bool {
        CURRENT.with_borrow(|current| current.as_ref().is_some_and(|queue| Arc::ptr_eq(queue, self)))
    }

    /// Appends answers, with one wake-up for all of them.
    pub fn push(&self, completions: &mut Vec<Completion>) {
        self.completed.lock().append(completions);
        self.wake();
    }

    /// Wakes the thread; a wake-up before `woken` sticks.
    pub fn wake(&self) {
        self.wakeup.notify_one();
    }

    /// Waits for a wake-up.
    pub async fn woken(&self) {
        self.wakeup.notified().await;
    }

    /// Exchanges everything that has arrived for an empty vector.
    pub fn swap(&self, empty: &mut Vec<Completion>) {
        mem::swap(&mut *self.completed.lock(), empty);
    }

    /// Whether nothing has arrived.
    pub fn is_empty(&self) -> bool {
        self.completed.lock().is_empty()
    }
}
