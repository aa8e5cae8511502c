//! The requests of a graph: how many run, and what became of those that have ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use alipes_protocol::{Code, InferError};
use alipes_stats::statistics::{ExecutionTimes, FailureReason, Snapshot, Statistics};

/// The lowest status that says that the server failed.
const SERVER_ERRORS: u16 = 500;

/// What became of the requests of a graph, whatever path they came to.
#[derive(Debug, Default)]
pub(crate) struct GraphRuns {
    statistics: Statistics,
    running: AtomicUsize,
}

impl GraphRuns {
    /// A request of so many rows begins.
    pub(super) fn begin(self: &Arc<Self>, rows: u32) -> GraphRun {
        self.running.fetch_add(1, Ordering::Relaxed);
        GraphRun { runs: Arc::clone(self), arrived: alipes_clock::now(), rows, failure: None, has_ended: false }
    }

    /// Requests that have not ended.
    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// What became of the others.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.statistics.snapshot()
    }
}

/// One request of a graph; recorded when it is dropped. Its caller has left where it was not ended before.
#[derive(Debug)]
pub struct GraphRun {
    runs: Arc<GraphRuns>,
    arrived: Instant,
    rows: u32,
    failure: Option<FailureReason>,
    has_ended: bool,
}

impl GraphRun {
    /// A response was an error: the request has failed, whatever follows.
    pub(super) fn fail(&mut self, error: &InferError) {
        self.failure = self.failure.or(Some(reason_of(error.code)));
    }

    /// The last response was taken.
    pub(super) fn end(mut self) {
        self.has_ended = true;
    }

    /// The graph has answered with this status of HTTP.
    pub fn end_with(mut self, status: u16) {
        self.failure = match status {
            SERVER_ERRORS.. => Some(FailureReason::Backend),
            400.. => Some(FailureReason::Other),
            _ => None,
        };
        self.end();
    }

    fn record(&self) {
        let (statistics, spent) = (&self.runs.statistics, alipes_clock::elapsed(self.arrived));
        match self.failure {
            Some(reason) => statistics.failed(reason, spent),
            None if !self.has_ended => statistics.failed(FailureReason::Canceled, spent),
            None => {
                // A graph computes nothing itself: its steps took all of the time, and say in their own statistics for
                // how much of it they waited.
                let times = ExecutionTimes { infer: spent, ..ExecutionTimes::default() };
                statistics.executed_each(times, [(self.rows, spent)]);
            }
        }
    }
}

impl Drop for GraphRun {
    fn drop(&mut self) {
        self.record();
        self.runs.running.fetch_sub(1, Ordering::Relaxed);
    }
}

fn reason_of(code: Code) -> FailureReason {
    match code {
        Code::Cancelled => FailureReason::Canceled,
        Code::Overloaded | Code::Unavailable => FailureReason::Rejected,
        Code::Internal => FailureReason::Backend,
        _ => FailureReason::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Successes, failures, and failures by reason.
    fn counts(runs: &GraphRuns) -> (u64, u64, [u64; 4]) {
        let Snapshot { success, fail, failures, .. } = runs.snapshot();
        (success.count, fail.count, failures)
    }

    #[test]
    fn a_run_is_counted_once_when_it_ends() {
        let runs = Arc::new(GraphRuns::default());
        let run = runs.begin(3);
        assert_eq!((runs.running(), counts(&runs)), (1, (0, 0, [0; 4])));
        run.end();
        assert_eq!((runs.running(), counts(&runs)), (0, (1, 0, [0; 4])));
        let snapshot = runs.snapshot();
        assert_eq!((snapshot.inference_count, snapshot.execution_count), (3, 1));
        assert_eq!((snapshot.compute.compute_infer, snapshot.queue.ns), (snapshot.success, 0));
    }

    #[test]
    fn a_run_without_an_end_was_left_by_its_caller() {
        let runs = Arc::new(GraphRuns::default());
        drop(runs.begin(1));
        assert_eq!((runs.running(), counts(&runs)), (0, (0, 1, [0, 1, 0, 0])));
    }

    #[test]
    fn the_first_error_of_a_run_is_its_failure() {
        let runs = Arc::new(GraphRuns::default());
        let mut run = runs.begin(1);
        run.fail(&InferError::internal("no"));
        run.fail(&InferError::invalid("no"));
        run.end();
        assert_eq!(counts(&runs), (0, 1, [0, 0, 1, 0]));
        // Also where nobody waits for the end.
        let mut run = runs.begin(1);
        run.fail(&InferError::new(Code::Overloaded, "no"));
        drop(run);
        assert_eq!(counts(&runs), (0, 2, [1, 0, 1, 0]));
    }

    #[test]
    fn a_status_says_what_became_of_a_run() {
        let runs = Arc::new(GraphRuns::default());
        [200, 302, 404, 503].into_iter().for_each(|status| runs.begin(1).end_with(status));
        assert_eq!(counts(&runs), (2, 2, [0, 0, 1, 1]));
    }
}
