//! Prometheus text of the books, under Triton's names, so that existing dashboards keep working.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::cpu::CpuGauges;
use super::statistics::{FailureReason, Snapshot, Tally};

/// What the text needs to know of one model version.
pub struct ModelRow {
    /// Labels of every sample, as `model="m",version="1"` with the model's own tags.
    pub labels: String,
    /// What happened so far.
    pub books: Snapshot,
    /// Requests waiting now.
    pub waiting: usize,
}

/// The labels of a model version; its tags carry an underscore in front. Source: Triton's metrics.
pub fn labels(model: &str, version: i64, namespace: &str, tags: &BTreeMap<String, String>) -> String {
    let mut text = format!("model=\"{}\",version=\"{version}\"", escape(model));
    if !namespace.is_empty() {
        let _ = write!(text, ",namespace=\"{}\"", escape(namespace));
    }
    for (key, value) in tags {
        let _ = write!(text, ",_{key}=\"{}\"", escape(value));
    }
    text
}

/// Escapes a label's value. Source: Prometheus text exposition format.
pub(super) fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

type Reading = fn(&ModelRow) -> f64;

const COUNTERS: [(&str, &str, Reading); 2] = [
    ("nv_inference_count", "Number of inferences performed (does not include cached requests)", |row| {
        row.books.inference_count as f64
    }),
    ("nv_inference_exec_count", "Number of model executions performed (does not include cached requests)", |row| {
        row.books.execution_count as f64
    }),
];

const DURATIONS: [(&str, &str, Reading); 5] = [
    ("nv_inference_request_duration_us", "Cumulative inference request duration in microseconds", |row| {
        micros(row.books.success)
    }),
    ("nv_inference_queue_duration_us", "Cumulative inference queuing duration in microseconds", |row| {
        micros(row.books.queue)
    }),
    ("nv_inference_compute_input_duration_us", "Cumulative compute input duration in microseconds", |row| {
        micros(row.books.compute.compute_input)
    }),
    ("nv_inference_compute_infer_duration_us", "Cumulative compute inference duration in microseconds", |row| {
        micros(row.books.compute.compute_infer)
    }),
    (
        "nv_inference_compute_output_duration_us",
        "Cumulative inference compute output duration in microseconds",
        |row| micros(row.books.compute.compute_output),
    ),
];

fn micros(tally: Tally) -> f64 {
    (tally.ns / 1000) as f64
}

/// What the text needs to know of one worker process.
pub struct WorkerRow {
    /// Labels of its model, and the instance.
    pub labels: String,
    /// It takes requests.
    pub up: bool,
    /// Starts after the first.
    pub restarts: u64,
}

/// The part about worker processes, which Triton does not have.
pub fn workers(text: &mut String, rows: &[WorkerRow]) {
    if rows.is_empty() {
        return;
    }
    family(text, "alipes_worker_up", "Whether the worker process of an instance takes requests", "gauge");
    rows.iter().for_each(|row| sample(text, "alipes_worker_up", &row.labels, f64::from(u8::from(row.up))));
    family(text, "alipes_worker_restarts_total", "Starts of a worker process after its first", "counter");
    rows.iter().for_each(|row| sample(text, "alipes_worker_restarts_total", &row.labels, row.restarts as f64));
}

/// The whole exposition; `durations` leaves the latency counters out where it is false.
pub fn exposition(rows: &[ModelRow], cpu: Option<CpuGauges>, durations: bool) -> String {
    let mut text = String::with_capacity(1024 + rows.len() * 2048);
    family(
        &mut text,
        "nv_inference_request_success",
        "Number of successful inference requests, all batch sizes",
        "counter",
    );
    for row in rows {
        sample(&mut text, "nv_inference_request_success", &row.labels, row.books.success.count as f64);
    }
    failures(&mut text, rows);
    for (name, help, reading) in COUNTERS {
        series(&mut text, name, help, "counter", rows, reading);
    }
    for (name, help, reading) in DURATIONS.into_iter().filter(|_| durations) {
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

fn failures(text: &mut String, rows: &[ModelRow]) {
    family(text, "nv_inference_request_failure", "Number of failed inference requests, all batch sizes", "counter");
    for row in rows {
        for reason in FailureReason::ALL {
            let labels = format!("{},reason=\"{}\"", row.labels, reason.label());
            sample(text, "nv_inference_request_failure", &labels, row.books.failures[reason as usize] as f64);
        }
    }
}

fn series(text: &mut String, name: &str, help: &str, kind: &str, rows: &[ModelRow], reading: Reading) {
    family(text, name, help, kind);
    for row in rows {
        sample(text, name, &row.labels, reading(row));
    }
}

fn gauge(text: &mut String, name: &str, help: &str, value: f64) {
    family(text, name, help, "gauge");
    let _ = writeln!(text, "{name} {value}");
}

fn family(text: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn sample(text: &mut String, name: &str, labels: &str, value: f64) {
    let _ = writeln!(text, "{name}{{{labels}}} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> ModelRow {
        let tags = BTreeMap::from([("team".to_owned(), "a\"b".to_owned())]);
        ModelRow { labels: labels("m", 1, "", &tags), books: Snapshot::default(), waiting: 3 }
    }

    #[test]
    fn tags_carry_an_underscore_and_values_are_escaped() {
        assert_eq!(row().labels, r#"model="m",version="1",_team="a\"b""#);
    }

    #[test]
    fn a_namespace_is_a_label_of_its_own() {
        assert_eq!(labels("m", 1, "/models", &BTreeMap::new()), r#"model="m",version="1",namespace="/models""#);
    }

    #[test]
    fn all_four_failure_series_exist_from_the_start() {
        let text = exposition(&[row()], None, true);
        for reason in ["REJECTED", "CANCELED", "BACKEND", "OTHER"] {
            assert!(text.contains(&format!("reason=\"{reason}\"}} 0\n")), "{text}");
        }
        assert!(text.contains("nv_inference_pending_request_count{model=\"m\",version=\"1\",_team=\"a\\\"b\"} 3\n"));
    }

    #[test]
    fn latency_counters_can_be_left_out() {
        assert!(exposition(&[row()], None, true).contains("_duration_us"));
        assert!(!exposition(&[row()], None, false).contains("_duration_us"));
    }
}
