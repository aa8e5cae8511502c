//! Starts the workers of a model version.

use std::sync::Arc;
use std::sync::mpsc;

use alipes_protocol::{Code, InferError};
use alipes_runtime::cancellation::Cancellation;
use alipes_runtime::model::ModelVersion;
use alipes_runtime::reactors::Reactors;
use alipes_stats::turn::{Task, timed};

use super::supervise::supervise;
use super::supervisor::Supervisor;
use super::worker::Worker;

/// Starts workers of a model version, side by side, and waits until each has loaded the model.
///
/// # Errors
///
/// The first worker's reason why it could not; all are stopped then. `Unavailable` where the load is cancelled: all
/// are killed.
pub fn start(
    supervisor: &Supervisor,
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
        supervisor.admit(worker);
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
