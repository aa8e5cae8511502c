//! The desk of a network thread: one task that hands out answers and runs quick models.
//!
//! Two costs are saved here. Answers from another thread arrive in one parcel per batch, so a batch costs one wake-up
//! rather than one per request. And a quick model runs on the network thread itself: the desk's task stands behind the
//! connections that are readable in this turn of the event loop, so their requests form one batch without any thread
//! being woken.

use std::cell::RefCell;
use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{Run, pool, turns};
use crate::request::responder::Delivery;

thread_local! {
    static CURRENT: RefCell<Option<Arc<Desk>>> = const { RefCell::new(None) };
}

/// The desk of this thread, where it is a network thread.
pub fn current() -> Option<Arc<Desk>> {
    CURRENT.with_borrow(Option::clone)
}

/// A network thread's incoming parcels and runs.
#[derive(Default)]
pub struct Desk {
    inbox: Mutex<Inbox>,
    arrived: Notify,
}

#[derive(Default)]
struct Inbox {
    deliveries: Vec<Delivery>,
    runs: Vec<Run>,
}

impl Desk {
    /// Opens the desk of the calling network thread; its task must be spawned on that thread.
    pub fn open() -> Arc<Desk> {
        let desk = Arc::new(Desk::default());
        CURRENT.with_borrow_mut(|current| *current = Some(Arc::clone(&desk)));
        desk
    }

    /// Closes the desk of the calling thread.
    pub fn close() {
        CURRENT.with_borrow_mut(|current| *current = None);
    }

    /// Whether this is the calling thread's own desk.
    pub fn is_here(self: &Arc<Self>) -> bool {
        CURRENT.with_borrow(|current| current.as_ref().is_some_and(|desk| Arc::ptr_eq(desk, self)))
    }

    /// Has a quick model's instance driven at the end of this turn of the event loop.
    pub fn run(&self, run: Run) {
        self.inbox.lock().runs.push(run);
        self.arrived.notify_one();
    }

    /// Leaves answers for this desk's connections, with one wake-up for all of them.
    pub fn deliver(&self, deliveries: &mut Vec<Delivery>) {
        self.inbox.lock().deliveries.append(deliveries);
        self.arrived.notify_one();
    }

    /// The desk's task: ends when the runtime does.
    pub async fn serve(self: Arc<Self>) {
        let mut open = Inbox::default();
        loop {
            self.arrived.notified().await;
            mem::swap(&mut *self.inbox.lock(), &mut open);
            open.deliveries.drain(..).for_each(Delivery::hand_over);
            open.runs.drain(..).for_each(step);
            if self.has_mail() {
                // Answers go out and new requests come in before the next batch is formed.
                tokio::task::yield_now().await;
            }
        }
    }

    fn has_mail(&self) -> bool {
        let inbox = self.inbox.lock();
        !(inbox.deliveries.is_empty() && inbox.runs.is_empty())
    }
}

/// One batch at a time, so that the network waits for no more than one execution of a quick model.
fn step(run: Run) {
    if let Some(waiting) = turns::drive_once(run) {
        pool::drive(waiting);
    }
}
