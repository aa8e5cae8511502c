//! Statistics of one model version, written once per batch.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use super::histogram::{Exposed, Histogram, Spans};
use super::latencies::Latencies;
use super::summary::{Shown, Summary};

/// A count of events and their total time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often.
    pub count: u64,
    /// Altogether, in nanoseconds.
    pub ns: u64,
}

impl Tally {
    fn add_all(&mut self, spans: &Spans) {
        self.count += spans.count;
        self.ns = self.ns.saturating_add(spans.total_ns);
    }

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

/// Why a request failed; the `reason` label of the failure counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// Refused by a queue policy.
    Rejected,
    /// Cancelled by the caller.
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

/// The statistics of a model version at one moment.
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
    /// Requests that the response cache answered, and how long it took to find their answers.
    pub cache_hit: Tally,
    /// Requests whose answers the response cache keeps, and how long it took to find none and to keep them.
    pub cache_miss: Tally,
    /// The parts of the executions, counted per request.
    pub compute: BatchTally,
    /// The parts of the executions by their size in rows.
    pub batches: BTreeMap<u32, BatchTally>,
    /// Failures by reason, in the order of `FailureReason::ALL`.
    pub failures: [u64; 4],
    /// From the arrival of a request to its answer.
    pub request_spans: Spans,
    /// From the arrival of a request to its execution.
    pub queue_spans: Spans,
}

impl Snapshot {
    fn executed(&mut self, now_ms: u64, execution: &Execution, queue: &Spans, request: &Spans) {
        let Execution { batch_size, rows, requests, times } = *execution;
        self.last_inference_ms = now_ms;
        self.inference_count += u64::from(rows);
        self.execution_count += 1;
        self.success.add_all(request);
        self.request_spans.merge(request);
        self.queue.add_all(queue);
        self.queue_spans.merge(queue);
        // Every request of a batch waited for the whole of it.
        let sharers = u32::try_from(requests).unwrap_or(u32::MAX);
        self.compute.compute_input.add(requests, times.input * sharers);
        self.compute.compute_infer.add(requests, times.infer * sharers);
        self.compute.compute_output.add(requests, times.output * sharers);
        let batch = self.batches.entry(batch_size).or_default();
        batch.compute_input.add(1, times.input);
        batch.compute_infer.add(1, times.infer);
        batch.compute_output.add(1, times.output);
    }
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
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
    /// The parts of the execution.
    pub times: ExecutionTimes,
}

/// What is kept beyond the statistics of every model.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// Quantiles of latencies.
    pub summaries: bool,
    /// Upper edges of the histogram of the time to the first response, in milliseconds; none where there is no such
    /// histogram.
    pub first_response_edges: Option<Vec<f64>>,
    /// Upper edges of the latencies that are counted for a model that tunes itself.
    pub latency_edges: Option<Vec<Duration>>,
}

/// Upper edges of the histogram of the time to the first response, in milliseconds. Source: Triton.
pub const FIRST_RESPONSE_EDGES: [f64; 4] = [100.0, 500.0, 2000.0, 5000.0];

/// The latencies of which quantiles are kept.
#[derive(Debug)]
struct Summaries {
    request: Summary,
    queue: Summary,
    compute_input: Summary,
    compute_infer: Summary,
    compute_output: Summary,
    cache_hit: Summary,
    cache_miss: Summary,
}

impl Summaries {
    fn new(now: Instant) -> Summaries {
        let new = || Summary::new(now);
        Summaries {
            request: new(),
            queue: new(),
            compute_input: new(),
            compute_infer: new(),
            compute_output: new(),
            cache_hit: new(),
            cache_miss: new(),
        }
    }

    fn executed(&mut self, now: Instant, Execution { requests, times, .. }: &Execution) {
        for _ in 0..*requests {
            self.compute_input.observe(now, times.input);
            self.compute_infer.observe(now, times.infer);
            self.compute_output.observe(now, times.output);
        }
    }
}

/// The statistics of one model version.
#[derive(Debug, Default)]
pub struct Statistics {
    // One short lock per batch: cheaper than a dozen atomics, and readers always see whole batches.
    inner: Mutex<Snapshot>,
    // Rarely enabled; costs one test of a pointer each.
    summaries: Option<Box<Mutex<Summaries>>>,
    first_responses: Option<Box<Mutex<Histogram>>>,
    latencies: Option<Box<Latencies>>,
}

impl Statistics {
    /// Empty statistics.
    pub fn new(extras: Extras) -> Statistics {
        let summaries = extras.summaries.then(|| Box::new(Mutex::new(Summaries::new(alipes_clock::now()))));
        let first_responses = extras.first_response_edges.map(|edges| Box::new(Mutex::new(Histogram::new(edges))));
        let latencies = extras.latency_edges.map(|edges| Box::new(Latencies::new(edges)));
        Statistics { summaries, first_responses, latencies, ..Statistics::default() }
    }

    /// Records an execution: the queue times of its requests that did not fail, and the times from arrival to response
    /// of those that it answered.
    pub fn executed(
        &self,
        execution: &Execution,
        waited: impl IntoIterator<Item = Duration>,
        answered: impl IntoIterator<Item = Duration>,
    ) {
        let mut summaries = self.summaries.as_ref().map(|summaries| (summaries.lock(), alipes_clock::now()));
        if let Some((summaries, now)) = &mut summaries {
            summaries.executed(*now, execution);
        }
        let (mut queue, mut request) = (Spans::default(), Spans::default());
        for wait in waited {
            queue.add(wait);
            if let Some((summaries, now)) = &mut summaries {
                summaries.queue.observe(*now, wait);
            }
        }
        for spent in answered {
            request.add(spent);
            if let Some(latencies) = &self.latencies {
                latencies.add(spent);
            }
            if let Some((summaries, now)) = &mut summaries {
                summaries.request.observe(*now, spent);
            }
        }
        drop(summaries);
        let now_ms = now_ms();
        self.inner.lock().executed(now_ms, execution, &queue, &request);
    }

    /// Records requests without queue time that were executed together and count as one execution each: the rows of
    /// each, and its time from arrival to response.
    pub fn executed_each(&self, times: ExecutionTimes, requests: impl IntoIterator<Item = (u32, Duration)>) {
        let execution = |rows| Execution { batch_size: rows, rows, requests: 1, times };
        if self.summaries.is_some() {
            let one = |(rows, spent)| self.executed(&execution(rows), [Duration::ZERO], [spent]);
            return requests.into_iter().for_each(one);
        }
        let now_ms = now_ms();
        let mut inner = self.inner.lock();
        for (rows, spent) in requests {
            let (mut queue, mut request) = (Spans::default(), Spans::default());
            queue.add(Duration::ZERO);
            request.add(spent);
            inner.executed(now_ms, &execution(rows), &queue, &request);
        }
    }

    /// Records a cache hit: the queue time before the lookup, the time of the lookup, and the time from arrival to
    /// response.
    pub fn cache_hit(&self, waited: Duration, looked: Duration, spent: Duration) {
        self.first_response(spent);
        if let Some(summaries) = &self.summaries {
            let (mut summaries, now) = (summaries.lock(), alipes_clock::now());
            summaries.queue.observe(now, waited);
            summaries.cache_hit.observe(now, looked);
        }
        let mut inner = self.inner.lock();
        inner.last_inference_ms = now_ms();
        inner.success.add(1, spent);
        inner.request_spans.add(spent);
        inner.queue.add(1, waited);
        inner.cache_hit.add(1, looked);
    }

    /// Records a cache miss: how long it took to look the response up and to insert it.
    pub fn cache_miss(&self, took: Duration) {
        if let Some(summaries) = &self.summaries {
            summaries.lock().cache_miss.observe(alipes_clock::now(), took);
        }
        self.inner.lock().cache_miss.add(1, took);
    }

    /// Records a request whose response was sent at another time than its execution ended.
    pub fn succeeded(&self, spent: Duration) {
        if let Some(summaries) = &self.summaries {
            summaries.lock().request.observe(alipes_clock::now(), spent);
        }
        if let Some(latencies) = &self.latencies {
            latencies.add(spent);
        }
        let mut inner = self.inner.lock();
        inner.success.add(1, spent);
        inner.request_spans.add(spent);
    }

    /// Whether to record the times to the first responses.
    pub fn wants_first_responses(&self) -> bool {
        self.first_responses.is_some()
    }

    /// Records the time from the arrival of a request to its first response, successful or not.
    pub fn first_response(&self, spent: Duration) {
        if let Some(first_responses) = &self.first_responses {
            first_responses.lock().add(spent.as_secs_f64() * 1e3);
        }
    }

    /// Records a request that failed.
    pub fn failed(&self, reason: FailureReason, time: Duration) {
        let mut inner = self.inner.lock();
        inner.fail.add(1, time);
        inner.failures[reason as usize] += 1;
    }

    /// Records a request that failed before it had a response: the error is its first.
    pub fn failed_unanswered(&self, reason: FailureReason, time: Duration) {
        self.first_response(time);
        self.failed(reason, time);
    }

    /// The histogram of the time to the first response, in milliseconds, where there is one.
    pub fn first_responses(&self) -> Option<Exposed> {
        self.first_responses.as_ref().map(|histogram| histogram.lock().exposed())
    }

    /// Counts of latencies between the edges that were asked for, where there are any.
    pub fn latencies(&self) -> Option<impl Iterator<Item = u64>> {
        self.latencies.as_ref().map(|latencies| latencies.counts())
    }

    /// Quantiles of the latencies, in the order of their metrics, where they are kept.
    pub fn summaries(&self, now: Instant, quantiles: &[f64]) -> Option<[Shown; 7]> {
        let mut guard = self.summaries.as_ref()?.lock();
        let Summaries { request, queue, compute_input, compute_infer, compute_output, cache_hit, cache_miss } =
            &mut *guard;
        let all = [request, queue, compute_input, compute_infer, compute_output, cache_hit, cache_miss];
        Some(all.map(|one| one.show(now, quantiles)))
    }

    /// The statistics so far.
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
        let execution = Execution { batch_size: 5, rows: 5, requests: 2, times };
        statistics.executed(&execution, [3, 4].map(Duration::from_nanos), [40, 60].map(Duration::from_nanos));
        let snapshot = statistics.snapshot();
        assert_eq!((snapshot.queue, snapshot.queue_spans.count), (Tally { count: 2, ns: 7 }, 2));
        assert_eq!((snapshot.request_spans.count, snapshot.request_spans.total_ns), (2, 100));
        assert_eq!((snapshot.inference_count, snapshot.execution_count), (5, 1));
        assert_eq!(snapshot.success, Tally { count: 2, ns: 100 });
        assert_eq!(snapshot.compute.compute_infer, Tally { count: 2, ns: 20 });
        assert_eq!(snapshot.batches[&5].compute_infer, Tally { count: 1, ns: 10 });
    }

    #[test]
    fn requests_that_were_executed_together_may_count_as_an_execution_each() {
        let statistics = Statistics::default();
        let times = ExecutionTimes { infer: Duration::from_nanos(10), ..Default::default() };
        statistics.executed_each(times, [(2, Duration::from_nanos(40)), (3, Duration::from_nanos(60))]);
        let snapshot = statistics.snapshot();
        assert_eq!((snapshot.inference_count, snapshot.execution_count), (5, 2));
        assert_eq!((snapshot.success, snapshot.queue), (Tally { count: 2, ns: 100 }, Tally { count: 2, ns: 0 }));
        assert_eq!(snapshot.compute.compute_infer, Tally { count: 2, ns: 20 });
        assert_eq!(snapshot.batches.keys().copied().collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn quantiles_and_first_responses_are_recorded_where_enabled() {
        let now = alipes_clock::now();
        let plain = Statistics::default();
        assert!(plain.summaries(now, &[0.5]).is_none() && plain.first_responses().is_none());
        let edges = Some(FIRST_RESPONSE_EDGES.to_vec());
        let statistics = Statistics::new(Extras { summaries: true, first_response_edges: edges, latency_edges: None });
        let times = ExecutionTimes { infer: Duration::from_micros(30), ..Default::default() };
        let execution = Execution { batch_size: 2, rows: 2, requests: 2, times };
        statistics.executed(&execution, [Duration::from_micros(5); 2], [Duration::from_micros(40)]);
        statistics.succeeded(Duration::from_micros(50));
        statistics.first_response(Duration::from_millis(600));
        statistics.cache_hit(Duration::ZERO, Duration::ZERO, Duration::from_millis(300));
        statistics.failed_unanswered(FailureReason::Rejected, Duration::from_millis(50));
        statistics.failed(FailureReason::Canceled, Duration::from_millis(50));
        let shown = statistics.summaries(now, &[0.0, 1.0]).unwrap();
        assert_eq!(shown.each_ref().map(|one| one.count), [2, 3, 2, 2, 2, 1, 0]);
        assert_eq!(shown.each_ref().map(|one| one.sum), [90, 10, 0, 60, 0, 0, 0]);
        assert_eq!(shown[0].quantiles, [40.0, 50.0]);
        assert_eq!(statistics.first_responses().unwrap().buckets[..3], [(100.0, 1), (500.0, 2), (2000.0, 3)]);
    }

    #[test]
    fn hits_and_misses_have_quantiles_of_their_own() {
        let now = alipes_clock::now();
        let statistics = Statistics::new(Extras { summaries: true, ..Extras::default() });
        let micros = Duration::from_micros;
        statistics.cache_miss(micros(9));
        [2, 4].into_iter().for_each(|looked| statistics.cache_hit(micros(1), micros(looked), micros(7)));
        let shown = statistics.summaries(now, &[1.0]).unwrap();
        assert_eq!(shown.each_ref().map(|one| (one.count, one.sum))[1], (2, 2));
        assert_eq!(shown.each_ref().map(|one| (one.count, one.sum))[5..], [(2, 6), (1, 9)]);
        assert_eq!((shown[5].quantiles[0], shown[6].quantiles[0]), (4.0, 9.0));
    }

    #[test]
    fn latencies_are_counted_where_enabled_and_hits_are_none_of_them() {
        let micros = Duration::from_micros;
        assert!(Statistics::default().latencies().is_none());
        let extras = Extras { latency_edges: Some(vec![micros(50), micros(100)]), ..Extras::default() };
        let statistics = Statistics::new(extras);
        let execution = Execution { batch_size: 2, rows: 2, requests: 2, times: ExecutionTimes::default() };
        statistics.executed(&execution, [micros(5); 2], [micros(40), micros(60)]);
        statistics.succeeded(micros(200));
        statistics.cache_hit(micros(1), micros(1), micros(2));
        assert_eq!(statistics.latencies().map(|counts| counts.collect()), Some(vec![1, 1, 1]));
    }

    #[test]
    fn a_failure_is_counted_under_exactly_one_reason() {
        let statistics = Statistics::default();
        statistics.failed(FailureReason::Backend, Duration::from_nanos(7));
        let snapshot = statistics.snapshot();
        assert_eq!(snapshot.failures, [0, 0, 1, 0]);
        assert_eq!(snapshot.fail, Tally { count: 1, ns: 7 });
        assert_eq!(snapshot.success, Tally::default());
    }
}
