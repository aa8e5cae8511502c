//! The run-to-completion queue of a network thread: runs of quick models, driven on the thread itself.
//!
//! The queue's task stands behind the connections that are readable in this iteration of the event loop, so the
//! requests that arrived in it form one batch without any thread being woken. The same task hands out the answers of
//! the thread's completion queue. Only the thread itself adds runs, so they need no lock.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use alipes_request::completion::CompletionQueue;
use alipes_request::responder::Completion;
use alipes_spec::Scheduling;
use alipes_stats::turn::{Task, note_request, timed};

use super::{Run, drive_loop, pool};

/// How long one request after the other is executed: as long as a few that take as much as it takes the event loop to
/// turn.
const MOMENT: Duration = Duration::from_micros(50);

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// The queue of this thread.
struct Current {
    runs: Vec<Run>,
    completions: Arc<CompletionQueue>,
}

/// The queue of one network thread. Its runs stay with the thread that opened it.
pub struct RunQueue {
    completions: Arc<CompletionQueue>,
}

/// Has an instance driven at the end of this iteration of the event loop; gives the run back on any other thread.
pub fn push(run: Run) -> Result<(), Run> {
    CURRENT.with_borrow_mut(|current| match current {
        Some(Current { runs, completions }) => {
            runs.push(run);
            completions.wake();
            Ok(())
        }
        None => Err(run),
    })
}

impl RunQueue {
    /// Opens the queues of the calling network thread; `serve` must be spawned on that thread.
    pub fn open() -> Arc<RunQueue> {
        let completions = CompletionQueue::open();
        let current = Current { runs: Vec::new(), completions: Arc::clone(&completions) };
        let before = CURRENT.replace(Some(current));
        drop(before);
        Arc::new(RunQueue { completions })
    }

    /// Closes the queues of the calling thread.
    pub fn close() {
        CompletionQueue::close();
        // Taken out first: a run may hold the last reference to its model version.
        let current = CURRENT.take();
        drop(current);
    }

    /// The task of both queues: ends when the event loop does.
    pub fn serve(self: Arc<Self>) -> impl Future<Output = ()> {
        timed(Task::RunQueue, self.drain())
    }

    async fn drain(self: Arc<Self>) {
        let (mut completed, mut runs): (Vec<Completion>, Vec<Run>) = Default::default();
        loop {
            self.completions.woken().await;
            self.completions.swap(&mut completed);
            swap(&mut runs);
            completed.drain(..).for_each(Completion::deliver);
            runs.drain(..).for_each(step);
            if !(self.completions.is_empty() && is_empty()) {
                // Answers go out and new requests come in before the next batch is formed.
                tokio::task::yield_now().await;
            }
        }
    }
}

/// Exchanges the runs of this thread for an empty vector.
fn swap(empty: &mut Vec<Run>) {
    CURRENT.with_borrow_mut(|current| {
        if let Some(current) = current {
            std::mem::swap(&mut current.runs, empty);
        }
    });
}

/// Whether this thread has no runs.
fn is_empty() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_none_or(|current| current.runs.is_empty()))
}

/// One batch at a time, so that the network waits for no more than one execution of a quick model. A model that forms
/// no batches goes on for a moment: nothing is gained for it by what comes meanwhile, and each time that the event loop
/// turns it asks the system what has come.
fn step(run: Run) {
    note_request("an execution", &run.model.name);
    let model = &run.model;
    // An ensemble's queue forms batches, whatever its specification has to say.
    let goes_on = matches!(model.spec.scheduling, Scheduling::Direct {}) && model.driver.local_instances().is_some();
    let end = alipes_clock::now() + MOMENT;
    if let Some(waiting) = drive_loop::drive_while(run, || goes_on && alipes_clock::now() < end) {
        pool::drive(waiting);
    }
}
