//! The supervisor of all worker processes of a server: starts them, and waits for their ends.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Instant;

use alipes_protocol::{Code, InferError};
use alipes_runtime::cancellation::Cancellation;
use alipes_runtime::model::ModelVersion;
use alipes_runtime::reactors::Reactors;
use alipes_stats::turn::{Task, timed};
use parking_lot::{Condvar, Mutex};

use super::supervise::supervise;
use super::worker::Worker;

/// Supervises the worker processes of a server.
#[derive(Default)]
pub struct Supervisor {
    workers: Mutex<Vec<Arc<Worker>>>,
    left: Condvar,
}

impl Supervisor {
    /// Starts workers of a model version, side by side, and waits until each has loaded the model.
    ///
    /// # Errors
    ///
    /// The first worker's reason why it could not; all are stopped then. `Unavailable` where the load is cancelled: all
    /// are killed.
    pub fn start(
        &self,
        reactors: &Reactors,
        model: &Arc<ModelVersion>,
        workers: &[Arc<Worker>],
        cancellation: &Cancellation,
    ) -> Result<(), InferError> {
        let mut starts = Vec::with_capacity(workers.len());
        for worker in workers {
            let reactor = reactors.pick_watch();
            let reactor = reactor.ok_or_else(|| InferError::new(Code::Unavailable, "the server does not run"))?;
            let (first, started) = mpsc::channel();
            let _ = worker.model.set(Arc::downgrade(model));
            self.workers.lock().push(Arc::clone(worker));
            reactor.spawn(timed(Task::Worker, supervise(Arc::clone(worker), first, model.gone())));
            starts.push(started);
        }
        let stopped = || Err(InferError::new(Code::Unavailable, "the server was stopped while the model was loading"));
        let cancelled = workers.to_vec();
        let _ending = cancellation.on_cancel(move || cancelled.iter().for_each(|worker| worker.stopping.ask_now()));
        let outcome = starts.iter().try_for_each(|start| start.recv().unwrap_or_else(|_| stopped()));
        if outcome.is_err() {
            workers.iter().for_each(|worker| worker.stopping.ask());
        }
        outcome
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
