//! Statistics of one model version, written once per batch.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

/// How often something happened and how long it took altogether.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often.
    pub count: u64,
    /// Altogether, in nanoseconds.
    pub ns: u64,
}

impl Tally {
    fn add(&mut self, count: u64, time: Duration) {
        self.count += count;
        self.ns += u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    }
}

/// The three parts of an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchTally {
    /// Gathering the inputs.
    pub compute_input: Tally,
    /// Running the model.
    pub compute_infer: Tally,
    /// Splitting the outputs.
    pub compute_output: Tally,
}

/// Why a request was not answered; the `reason` label of the failure counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// Refused by a queue policy.
    Rejected,
    /// Withdrawn by the caller.
    Canceled,
    /// The model failed.
    Backend,
    /// Anything else.
    Other,
}

impl FailureReason {
    /// Every reason, in the order of the counters.
    pub const ALL: [FailureReason; 4] =
        [FailureReason::Rejected, FailureReason::Canceled, FailureReason::Backend, FailureReason::Other];

    /// The label's value. Source: Triton's metrics.
    pub const fn label(self) -> &'static str {
        match self {
            FailureReason::Rejected => "REJECTED",
            FailureReason::Canceled => "CANCELED",
            FailureReason::Backend => "BACKEND",
            FailureReason::Other => "OTHER",
        }
    }
}

/// What happened to a model version so far.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// When the last request was answered, in milliseconds since 1970; 0 for never.
    pub last_inference_ms: u64,
    /// Rows answered.
    pub inference_count: u64,
    /// Executions.
    pub execution_count: u64,
    /// Requests answered, from their arrival to their answer.
    pub success: Tally,
    /// Requests that failed, likewise.
    pub fail: Tally,
    /// Waiting for an instance.
    pub queue: Tally,
    /// The parts of the executions, counted per request.
    pub compute: BatchTally,
    /// The parts of the executions by their size in rows.
    pub batches: BTreeMap<u32, BatchTally>,
    /// Failures by reason, in the order of `FailureReason::ALL`.
    pub failures: [u64; 4],
}

/// How long the parts of one execution took.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExecutionTimes {
    /// Gathering the inputs.
    pub input: Duration,
    /// Running the model.
    pub infer: Duration,
    /// Splitting the outputs.
    pub output: Duration,
}

/// What the executions behind one request took together, where several models answer it.
#[derive(Debug, Default)]
pub struct Shares {
    input_ns: AtomicU64,
    infer_ns: AtomicU64,
    output_ns: AtomicU64,
}

impl Shares {
    /// Adds an execution.
    pub fn add(&self, times: &ExecutionTimes) {
        let add = |sum: &AtomicU64, time: Duration| {
            sum.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        };
        add(&self.input_ns, times.input);
        add(&self.infer_ns, times.infer);
        add(&self.output_ns, times.output);
    }

    /// What they took so far.
    pub fn total(&self) -> ExecutionTimes {
        let time = |sum: &AtomicU64| Duration::from_nanos(sum.load(Ordering::Relaxed));
        ExecutionTimes { input: time(&self.input_ns), infer: time(&self.infer_ns), output: time(&self.output_ns) }
    }
}

/// One execution, of which some requests may have failed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Execution {
    /// Size of the batch in rows.
    pub batch_size: u32,
    /// Rows of the requests that did not fail.
    pub rows: u32,
    /// Requests that did not fail.
    pub requests: u64,
    /// Their times in the queue, added up.
    pub queued: Duration,
    /// The parts of the execution.
    pub times: ExecutionTimes,
}

/// The statistics of one model version.
#[derive(Debug, Default)]
pub struct Statistics {
    // One short lock per batch: cheaper than a dozen atomics, and readers always see whole batches.
    inner: Mutex<Snapshot>,
}

impl Statistics {
    /// Books an execution, and the times from arrival to answer of the requests that it answered.
    pub fn executed(&self, execution: &Execution, answered: impl IntoIterator<Item = Duration>) {
        let Execution { batch_size, rows, requests, queued, times } = *execution;
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let mut books = self.inner.lock();
        books.last_inference_ms = u64::try_from(now_ms).unwrap_or(u64::MAX);
        books.inference_count += u64::from(rows);
        books.execution_count += 1;
        answered.into_iter().for_each(|spent| books.success.add(1, spent));
        books.queue.add(requests, queued);
        // Every request of a batch waited for the whole of it.
        let sharers = u32::try_from(requests).unwrap_or(u32::MAX);
        books.compute.compute_input.add(requests, times.input * sharers);
        books.compute.compute_infer.add(requests, times.infer * sharers);
        books.compute.compute_output.add(requests, times.output * sharers);
        let batch = books.batches.entry(batch_size).or_default();
        batch.compute_input.add(1, times.input);
        batch.compute_infer.add(1, times.infer);
        batch.compute_output.add(1, times.output);
    }

    /// Books a request that was answered at another time than its execution ended.
    pub fn succeeded(&self, spent: Duration) {
        self.inner.lock().success.add(1, spent);
    }

    /// Books an execution that failed; its requests are booked one by one with `failed`.
    pub fn execution_failed(&self) {
        self.inner.lock().execution_count += 1;
    }

    /// Books a request that was not answered.
    pub fn failed(&self, reason: FailureReason, time: Duration) {
        let mut books = self.inner.lock();
        books.fail.add(1, time);
        books.failures[reason as usize] += 1;
    }

    /// What happened so far.
    pub fn snapshot(&self) -> Snapshot {
        self.inner.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_counts_rows_requests_and_its_batch_size() {
        let statistics = Statistics::default();
        let times = ExecutionTimes { infer: Duration::from_nanos(10), ..Default::default() };
        let execution = Execution { batch_size: 5, rows: 5, requests: 2, queued: Duration::ZERO, times };
        statistics.executed(&execution, [40, 60].map(Duration::from_nanos));
        let books = statistics.snapshot();
        assert_eq!((books.inference_count, books.execution_count), (5, 1));
        assert_eq!(books.success, Tally { count: 2, ns: 100 });
        assert_eq!(books.compute.compute_infer, Tally { count: 2, ns: 20 });
        assert_eq!(books.batches[&5].compute_infer, Tally { count: 1, ns: 10 });
    }

    #[test]
    fn a_failure_is_counted_under_exactly_one_reason() {
        let statistics = Statistics::default();
        statistics.failed(FailureReason::Backend, Duration::from_nanos(7));
        let books = statistics.snapshot();
        assert_eq!(books.failures, [0, 0, 1, 0]);
        assert_eq!(books.fail, Tally { count: 1, ns: 7 });
        assert_eq!(books.success, Tally::default());
    }
}
