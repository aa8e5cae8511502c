//! The supervisor of all worker processes of a server: has them all, and waits for their ends.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use super::worker::Worker;

/// Supervises the worker processes of a server.
#[derive(Default)]
pub struct Supervisor {
    workers: Mutex<Vec<Arc<Worker>>>,
    left: Condvar,
}

impl Supervisor {
    /// Keeps a worker until it leaves.
    pub fn admit(&self, worker: &Arc<Worker>) {
        self.workers.lock().push(Arc::clone(worker));
    }

    /// Passes the log's verbosity on to every worker.
    pub fn pass_on_verbosity(&self) {
        let workers = self.workers.lock().clone();
        workers.iter().for_each(|worker| worker.pass_on_verbosity());
    }

    /// Removes a worker whose process has ended.
    pub fn leave(&self, worker: &Arc<Worker>) {
        self.workers.lock().retain(|other| !Arc::ptr_eq(other, worker));
        self.left.notify_all();
    }

    /// Asks every worker to finalize, and waits until all have ended; false where the deadline came first.
    pub fn stop(&self, deadline: Instant) -> bool {
        let mut workers = self.workers.lock();
        workers.iter().for_each(|worker| worker.stopping.ask());
        while !workers.is_empty() {
            if self.left.wait_until(&mut workers, deadline).timed_out() {
                break;
            }
        }
        workers.is_empty()
    }
}
