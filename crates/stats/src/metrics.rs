//! Prometheus text of the statistics, under Triton's names, so that existing dashboards keep working.

mod gpus;
mod labels;
mod server;
mod text;

use std::fmt::Write;

use self::text::{family, gauge, sample};
use super::cpu::CpuGauges;
use super::histogram::{Exposed, Histogram};
use super::statistics::{FailureReason, Snapshot, Tally};
use super::summary::Shown;
pub use gpus::{GpuRow, gpus};
pub use labels::Labels;
pub use server::{
    PayloadRow, ProcessRow, SequencesRow, TuningRow, WorkerRow, build, payloads, processes, sequences, tuning, turns,
    workers,
};
pub(crate) use text::escape;

/// Metrics of one model version.
pub struct ModelRow {
    /// Labels of every sample, the model's own tags among them.
    pub labels: Labels,
    /// Its statistics.
    pub statistics: Snapshot,
    /// Requests waiting now.
    pub waiting: usize,
    /// Requests that it has in it now: those that wait and those that are executed.
    pub requests: usize,
    /// For how long the request has waited that has waited longest, in seconds; 0 where none waits.
    pub longest_wait_s: f64,
    /// How long it took to load, in seconds.
    pub load_s: f64,
    /// Whether its responses are cached.
    pub cached: bool,
    /// Times to the first response, where they are counted.
    pub first_responses: Option<Exposed>,
    /// Quantiles of latencies, where they are kept.
    pub summaries: Option<[Shown; 7]>,
}

/// Which optional families are shown.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// Total durations.
    pub durations: bool,
    /// The histograms that alipes has and Triton has not.
    pub histograms: bool,
    /// The quantiles of the summaries.
    pub quantiles: &'a [f64],
}

/// Fill of the response cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Cached responses.
    pub entries: usize,
    /// Bytes of the responses and their requests.
    pub bytes: usize,
    /// Most bytes.
    pub limit_bytes: usize,
    /// Responses evicted so far.
    pub evictions: u64,
}

type Reading = fn(&ModelRow) -> f64;

const COUNTERS: [(&str, &str, Reading); 2] = [
    ("nv_inference_count", "Number of inferences performed (does not include cached requests)", |row| {
        row.statistics.inference_count as f64
    }),
    ("nv_inference_exec_count", "Number of model executions performed (does not include cached requests)", |row| {
        row.statistics.execution_count as f64
    }),
];

const DURATIONS: [(&str, &str, Reading); 5] = [
    ("nv_inference_request_duration_us", "Cumulative inference request duration in microseconds", |row| {
        micros(row.statistics.success)
    }),
    ("nv_inference_queue_duration_us", "Cumulative inference queuing duration in microseconds", |row| {
        micros(row.statistics.queue)
    }),
    ("nv_inference_compute_input_duration_us", "Cumulative compute input duration in microseconds", |row| {
        micros(row.statistics.compute.compute_input)
    }),
    ("nv_inference_compute_infer_duration_us", "Cumulative compute inference duration in microseconds", |row| {
        micros(row.statistics.compute.compute_infer)
    }),
    (
        "nv_inference_compute_output_duration_us",
        "Cumulative inference compute output duration in microseconds",
        |row| micros(row.statistics.compute.compute_output),
    ),
];

/// Families of models with a response cache.
const CACHE: [(&str, &str, Reading); 2] = [
    ("nv_cache_num_hits_per_model", "Number of cache hits per model", |row| row.statistics.cache_hit.count as f64),
    ("nv_cache_num_misses_per_model", "Number of cache misses per model", |row| row.statistics.cache_miss.count as f64),
];

const CACHE_DURATIONS: [(&str, &str, Reading); 2] = [
    ("nv_cache_hit_duration_per_model", "Total cache hit duration per model, in microseconds", |row| {
        micros(row.statistics.cache_hit)
    }),
    ("nv_cache_miss_duration_per_model", "Total cache miss duration per model, in microseconds", |row| {
        micros(row.statistics.cache_miss)
    }),
];

/// Families of quantiles, in the order in which the statistics give them.
const SUMMARIES: [(&str, &str, Shows); 7] = [
    ("nv_inference_request_summary_us", "Summary of inference request duration in microseconds", |row| !row.cached),
    ("nv_inference_queue_summary_us", "Summary of inference queuing duration in microseconds", |_| true),
    ("nv_inference_compute_input_summary_us", "Summary of compute input duration in microseconds", |_| true),
    ("nv_inference_compute_infer_summary_us", "Summary of compute inference duration in microseconds", |_| true),
    ("nv_inference_compute_output_summary_us", "Summary of inference compute output duration in microseconds", |_| {
        true
    }),
    ("nv_cache_hit_summary_per_model", "Summary of cache hit counts/durations per model, in microseconds.", |row| {
        row.cached
    }),
    ("nv_cache_miss_summary_per_model", "Summary of cache miss counts/durations per model, in microseconds.", |row| {
        row.cached
    }),
];

/// Whether a model has a family. Source: of a model with a response cache, Triton shows the lookups and not the
/// requests.
type Shows = fn(&ModelRow) -> bool;

/// Triton's one histogram; shown where it is asked for, as there.
pub const FIRST_RESPONSE: &str = "nv_inference_first_response_histogram_ms";

/// Upper edges of the batch sizes, in rows.
const BATCH_EDGES: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

fn micros(tally: Tally) -> f64 {
    (tally.ns / 1000) as f64
}

/// The whole exposition of the models and the machine.
pub fn exposition(rows: &[ModelRow], cpu: Option<CpuGauges>, choice: &Choice<'_>) -> String {
    let mut text = String::with_capacity(1024 + rows.len() * 2048);
    family(
        &mut text,
        "nv_inference_request_success",
        "Number of successful inference requests, all batch sizes",
        "counter",
    );
    for row in rows {
        sample(&mut text, "nv_inference_request_success", &row.labels, row.statistics.success.count as f64);
    }
    failures(&mut text, rows);
    for (name, help, reading) in COUNTERS {
        series(&mut text, name, help, "counter", rows, reading);
    }
    for (name, help, reading) in DURATIONS.into_iter().filter(|_| choice.durations) {
        series(&mut text, name, help, "counter", rows, reading);
    }
    let pending = "nv_inference_pending_request_count";
    series(
        &mut text,
        pending,
        "Instantaneous number of pending requests awaiting execution per-model.",
        "gauge",
        rows,
        |row| row.waiting as f64,
    );
    let requests = "alipes_inference_concurrency";
    let help = "Requests that the model has in it: those that wait, and those that are executed";
    series(&mut text, requests, help, "gauge", rows, |row| row.requests as f64);
    let wait = "alipes_inference_longest_wait_seconds";
    let help = "Time for which the request has waited that has waited longest; 0 where none waits";
    series(&mut text, wait, help, "gauge", rows, |row| row.longest_wait_s);
    let load = "nv_model_load_duration_secs";
    series(&mut text, load, "Model load time in seconds", "gauge", rows, |row| row.load_s);
    summaries(&mut text, rows, choice.quantiles);
    let first = "Duration from request to first response in milliseconds";
    histograms(&mut text, FIRST_RESPONSE, first, rows, |row| row.first_responses.clone());
    if choice.histograms {
        our_histograms(&mut text, rows);
    }
    if let Some(cpu) = cpu {
        gauge(&mut text, "nv_cpu_utilization", "CPU utilization rate [0.0 - 1.0]", cpu.utilization);
        gauge(
            &mut text,
            "nv_cpu_memory_total_bytes",
            "CPU total memory (RAM), in bytes",
            cpu.memory_total_bytes as f64,
        );
        gauge(&mut text, "nv_cpu_memory_used_bytes", "CPU used memory (RAM), in bytes", cpu.memory_used_bytes as f64);
    }
    text
}

/// The part about the response cache: what Triton reports for each model that uses it, and how full it is.
pub fn cache(text: &mut String, rows: &[ModelRow], usage: Usage, durations: bool) {
    let shown = CACHE.iter().chain(CACHE_DURATIONS.iter().filter(|_| durations));
    for (name, help, reading) in shown {
        family(text, name, help, "counter");
        rows.iter().filter(|row| row.cached).for_each(|row| sample(text, name, &row.labels, reading(row)));
    }
    gauge(text, "alipes_response_cache_bytes", "Bytes that the response cache holds", usage.bytes as f64);
    let limit = "Bytes that the response cache may hold";
    gauge(text, "alipes_response_cache_limit_bytes", limit, usage.limit_bytes as f64);
    gauge(text, "alipes_response_cache_entries", "Answers that the response cache holds", usage.entries as f64);
    let name = "alipes_response_cache_evictions_total";
    family(text, name, "Answers that the response cache has given up to make room", "counter");
    let _ = writeln!(text, "{name} {}", usage.evictions);
}

fn failures(text: &mut String, rows: &[ModelRow]) {
    family(text, "nv_inference_request_failure", "Number of failed inference requests, all batch sizes", "counter");
    for row in rows {
        for reason in FailureReason::ALL {
            let labels = row.labels.with("reason", reason.label());
            sample(text, "nv_inference_request_failure", &labels, row.statistics.failures[reason as usize] as f64);
        }
    }
}

fn series(text: &mut String, name: &str, help: &str, kind: &str, rows: &[ModelRow], reading: Reading) {
    family(text, name, help, kind);
    for row in rows {
        sample(text, name, &row.labels, reading(row));
    }
}

/// Triton has none of these, so they carry our name: its dashboards and tests find what they find there.
fn our_histograms(text: &mut String, rows: &[ModelRow]) {
    let request = "Time from the arrival of a request to its answer";
    histograms(text, "alipes_inference_request_seconds", request, rows, |row| {
        Some(row.statistics.request_spans.exposed())
    });
    let queue = "Time from the arrival of a request to its execution";
    histograms(text, "alipes_inference_queue_seconds", queue, rows, |row| Some(row.statistics.queue_spans.exposed()));
    let batch = "Size of an executed batch in rows";
    histograms(text, "alipes_inference_batch_rows", batch, rows, |row| Some(batch_sizes(&row.statistics)));
}

/// The statistics have a count for each batch size, so the histogram needs no counter of its own.
fn batch_sizes(statistics: &Snapshot) -> Exposed {
    let mut sizes = Histogram::new(BATCH_EDGES.to_vec());
    statistics.batches.iter().for_each(|(&rows, tally)| sizes.add_many(rows.into(), tally.compute_infer.count));
    sizes.exposed()
}

fn histograms(
    text: &mut String,
    name: &str,
    help: &str,
    rows: &[ModelRow],
    reading: impl Fn(&ModelRow) -> Option<Exposed>,
) {
    let mut shown = rows.iter().filter_map(|row| Some((row, reading(row)?))).peekable();
    if shown.peek().is_some() {
        family(text, name, help, "histogram");
    }
    for (ModelRow { labels, .. }, Exposed { buckets, sum, count }) in shown {
        for (edge, so_far) in buckets {
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{edge}\"}} {so_far}");
        }
        let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
        let _ = writeln!(text, "{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {count}");
    }
}

fn summaries(text: &mut String, rows: &[ModelRow], quantiles: &[f64]) {
    for (index, (name, help, shows)) in SUMMARIES.into_iter().enumerate() {
        let shown = rows.iter().filter(|row| shows(row));
        let mut shown = shown.filter_map(|row| Some((&row.labels, &row.summaries.as_ref()?[index]))).peekable();
        if shown.peek().is_some() {
            family(text, name, help, "summary");
        }
        for (labels, shown) in shown {
            for (quantile, value) in quantiles.iter().zip(&shown.quantiles) {
                let _ = writeln!(text, "{name}{{{labels},quantile=\"{quantile}\"}} {value}");
            }
            let (sum, count) = (shown.sum, shown.count);
            let _ = writeln!(text, "{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {count}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::statistics::BatchTally;

    fn row() -> ModelRow {
        let tags = BTreeMap::from([("team".to_owned(), "a\"b".to_owned())]);
        ModelRow {
            labels: Labels::of_model("m", 1, "", &tags),
            statistics: Snapshot::default(),
            waiting: 3,
            requests: 5,
            longest_wait_s: 1.5,
            load_s: 0.25,
            cached: false,
            first_responses: None,
            summaries: None,
        }
    }

    const PLAIN: Choice<'_> = Choice { durations: true, histograms: true, quantiles: &[0.5, 0.999] };

    #[test]
    fn all_four_failure_series_exist_from_the_start() {
        let text = exposition(&[row()], None, &PLAIN);
        for reason in ["REJECTED", "CANCELED", "BACKEND", "OTHER"] {
            assert!(text.contains(&format!("reason=\"{reason}\",version=\"1\"}} 0\n")), "{text}");
        }
        assert!(text.contains("nv_inference_pending_request_count{_team=\"a\\\"b\",model=\"m\",version=\"1\"} 3\n"));
    }

    #[test]
    fn a_scaler_finds_requests_and_the_longest_wait() {
        let text = exposition(&[row()], None, &PLAIN);
        for line in [
            "# TYPE alipes_inference_concurrency gauge",
            r#"alipes_inference_concurrency{_team="a\"b",model="m",version="1"} 5"#,
            r#"alipes_inference_longest_wait_seconds{_team="a\"b",model="m",version="1"} 1.5"#,
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line} in {text}");
        }
    }

    #[test]
    fn latency_counters_can_be_left_out() {
        assert!(exposition(&[row()], None, &PLAIN).contains("_duration_us"));
        assert!(!exposition(&[row()], None, &Choice { durations: false, ..PLAIN }).contains("_duration_us"));
    }

    #[test]
    fn buckets_hold_what_lower_ones_hold_and_end_at_infinity() {
        let mut row = row();
        let tally = BatchTally { compute_infer: Tally { count: 3, ns: 0 }, ..BatchTally::default() };
        row.statistics.batches = BTreeMap::from([(2, tally), (300, tally)]);
        row.statistics.request_spans.add(Duration::from_millis(3));
        let text = exposition(&[row], None, &PLAIN);
        for line in [
            r#"alipes_inference_batch_rows_bucket{_team="a\"b",model="m",version="1",le="1"} 0"#,
            r#"alipes_inference_batch_rows_bucket{_team="a\"b",model="m",version="1",le="2"} 3"#,
            r#"alipes_inference_batch_rows_bucket{_team="a\"b",model="m",version="1",le="+Inf"} 6"#,
            r#"alipes_inference_batch_rows_sum{_team="a\"b",model="m",version="1"} 906"#,
            r#"alipes_inference_request_seconds_bucket{_team="a\"b",model="m",version="1",le="0.0025"} 0"#,
            r#"alipes_inference_request_seconds_bucket{_team="a\"b",model="m",version="1",le="0.005"} 1"#,
            r#"alipes_inference_request_seconds_sum{_team="a\"b",model="m",version="1"} 0.003"#,
            r#"nv_model_load_duration_secs{_team="a\"b",model="m",version="1"} 0.25"#,
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line} in {text}");
        }
        assert!(!exposition(&[], None, &Choice { histograms: false, ..PLAIN }).contains("histogram"));
    }

    #[test]
    fn summaries_and_the_histogram_show_where_enabled() {
        assert!(!exposition(&[row()], None, &PLAIN).contains("summary"));
        let shown = Shown { quantiles: vec![f64::NAN, 12.0], sum: 20, count: 2 };
        let mut histogram = Histogram::new(vec![100.0]);
        histogram.add(200.0);
        let summaries = Some([&shown; 7].map(Clone::clone));
        let row = ModelRow { summaries, first_responses: Some(histogram.exposed()), ..row() };
        let text = exposition(&[row], None, &PLAIN);
        for line in [
            "# TYPE nv_inference_queue_summary_us summary",
            r#"nv_inference_queue_summary_us{_team="a\"b",model="m",version="1",quantile="0.5"} NaN"#,
            r#"nv_inference_queue_summary_us{_team="a\"b",model="m",version="1",quantile="0.999"} 12"#,
            r#"nv_inference_request_summary_us_count{_team="a\"b",model="m",version="1"} 2"#,
            "# TYPE nv_inference_first_response_histogram_ms histogram",
            r#"nv_inference_first_response_histogram_ms_bucket{_team="a\"b",model="m",version="1",le="100"} 0"#,
            r#"nv_inference_first_response_histogram_ms_sum{_team="a\"b",model="m",version="1"} 200"#,
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line} in {text}");
        }
    }

    #[test]
    fn of_a_cached_model_the_searches_are_shown_and_the_requests_are_not() {
        let shown = Shown { quantiles: vec![1.0, 2.0], sum: 20, count: 2 };
        let summaries = Some([&shown; 7].map(Clone::clone));
        let families = |cached| {
            let text = exposition(&[ModelRow { summaries: summaries.clone(), cached, ..row() }], None, &PLAIN);
            ["nv_inference_request_summary_us", "nv_cache_hit_summary_per_model", "nv_cache_miss_summary_per_model"]
                .map(|name| text.contains(&format!("# TYPE {name} summary\n")))
        };
        assert_eq!((families(false), families(true)), ([true, false, false], [false, true, true]));
    }
}
