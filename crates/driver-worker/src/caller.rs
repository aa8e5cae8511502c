//! The caller of a request that a worker holds. The worker learns when it leaves, and when it consumes responses.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use alipes_link::LinkHandle;
use alipes_request::responder::Observer;
use alipes_stats::statistics::FailureReason;

use super::worker::Worker;

/// The caller of one request.
pub struct Caller {
    worker: Weak<Worker>,
    ticket: u64,
    // Set once the request is in the worker's ring.
    place: OnceLock<(LinkHandle, u32)>,
    cancelled: AtomicBool,
    left: AtomicBool,
}

impl Caller {
    /// The caller of the request with this ticket.
    pub fn new(worker: &Arc<Worker>, ticket: u64) -> Arc<Caller> {
        Arc::new(Caller {
            worker: Arc::downgrade(worker),
            ticket,
            place: OnceLock::new(),
            cancelled: AtomicBool::new(false),
            left: AtomicBool::new(false),
        })
    }

    /// The request has come into this slot.
    pub fn placed(&self, link: &LinkHandle, slot: u32) {
        let _ = self.place.set((link.clone(), slot));
    }

    /// Has the request withdrawn if it was cancelled before it was placed. Either this or the notice itself sees both.
    pub fn catch_up(&self) {
        if self.cancelled.load(Ordering::SeqCst) {
            self.withdraw();
        }
    }

    fn withdraw(&self) {
        let Some((link, slot)) = self.place.get() else { return };
        if let Some(worker) = self.worker.upgrade() {
            withdraw(&worker, *slot, self.ticket);
        }
        if self.left.load(Ordering::SeqCst) {
            link.caller_left(*slot, self.ticket);
        }
    }
}

/// Observes the caller for the worker.
pub struct Watch(pub Arc<Caller>);

impl Observer for Watch {
    fn cancelled(&self) {
        self.0.left.store(true, Ordering::SeqCst);
        self.cancelled_by_reader();
    }

    fn cancelled_by_reader(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        self.0.withdraw();
    }

    fn consumed(&self, responses: u32, bytes: u64) {
        if let Some((link, slot)) = self.0.place.get() {
            link.consumed(*slot, self.0.ticket, responses, bytes);
        }
    }
}

/// A caller has gone: a request that the worker has not claimed is revoked, a claimed one is cancelled.
fn withdraw(worker: &Arc<Worker>, slot: u32, ticket: u64) {
    let Some(model) = worker.model() else { return };
    let mut guard = worker.state.lock();
    let state = &mut *guard;
    let Some(link) = state.link.as_ref() else { return };
    // In a sequence what comes next would be wrong without it.
    if model.sequences.is_some() || !link.revoke(slot, ticket) {
        link.cancel(slot, ticket);
        return;
    }
    let Some(request) = state.slots.take(slot, ticket) else { return };
    let freed = state.end_turn(&request);
    drop(guard);
    model.statistics.failed(FailureReason::Canceled, alipes_clock::elapsed(request.arrived));
    // Without the lock: others may have waited for their turn behind it, and be told now.
    drop(request);
    if let Some(turn) = freed {
        model.driver.start(&model, turn);
    }
}
