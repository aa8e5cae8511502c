//! Metrics of what a server has beside model versions, none of which Triton has.

use std::fmt::Write;
use std::time::Duration;

use super::labels::Labels;
use super::text::{escape, family, gauge, sample};
use crate::turn::TurnReading;

/// Metrics of one worker process.
pub struct WorkerRow {
    /// Labels of its model, and the instance.
    pub labels: Labels,
    /// Whether it takes requests.
    pub up: bool,
    /// Number of restarts.
    pub restarts: u64,
    /// Processor time of its process, in seconds; none where it has none of its own, or that is not shown.
    pub cpu_s: Option<f64>,
}

/// Appends the families of worker processes, which Triton does not have.
pub fn workers(text: &mut String, rows: &[WorkerRow]) {
    if rows.is_empty() {
        return;
    }
    family(text, "alipes_worker_up", "Whether the worker process of an instance takes requests", "gauge");
    rows.iter().for_each(|row| sample(text, "alipes_worker_up", &row.labels, f64::from(u8::from(row.up))));
    family(text, "alipes_worker_restarts_total", "Starts of a worker process after its first", "counter");
    rows.iter().for_each(|row| sample(text, "alipes_worker_restarts_total", &row.labels, row.restarts as f64));
    let mut timed = rows.iter().filter_map(|row| Some((row, row.cpu_s?))).peekable();
    if timed.peek().is_some() {
        let name = "alipes_worker_cpu_seconds_total";
        family(text, name, "User and system processor time of the worker process of an instance in seconds", "counter");
        timed.for_each(|(row, seconds)| sample(text, name, &row.labels, seconds));
    }
}

/// Processor time of the server, worker processes apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessRow {
    /// Of the server's own process, in seconds.
    pub server_s: f64,
    /// Of the script that has started the server to serve its functions, in seconds.
    pub script_s: Option<f64>,
    /// Processors that the server may use at a time.
    pub processors: usize,
}

/// Appends the processor time of the server: its own under the name that Prometheus' client libraries give it.
pub fn processes(text: &mut String, row: &ProcessRow) {
    let mut single = |name, help, kind, value: f64| {
        family(text, name, help, kind);
        let _ = writeln!(text, "{name} {value}");
    };
    let server = "User and system processor time of the server's process in seconds";
    single("process_cpu_seconds_total", server, "counter", row.server_s);
    if let Some(seconds) = row.script_s {
        let script = "User and system processor time of the script whose functions are served in seconds";
        single("alipes_script_cpu_seconds_total", script, "counter", seconds);
    }
    single("alipes_processors", "Processors that the server may use at a time", "gauge", row.processors as f64);
}

/// Metrics of one streaming model.
pub struct SequencesRow {
    /// Labels of the model.
    pub labels: Labels,
    /// Its live sequences.
    pub live: usize,
}

/// Appends the families of streaming models, which Triton does not have.
pub fn sequences(text: &mut String, rows: &[SequencesRow]) {
    if rows.is_empty() {
        return;
    }
    family(text, "alipes_live_sequences", "Sequences whose state the server keeps", "gauge");
    rows.iter().for_each(|row| sample(text, "alipes_live_sequences", &row.labels, row.live as f64));
}

/// Metrics of one model that tunes itself.
pub struct TuningRow {
    /// Labels of the model.
    pub labels: Labels,
    /// What 99 of 100 requests are to be answered within.
    pub objective: Duration,
    /// The queue delay that is set.
    pub queue_delay: Duration,
    /// The batch that is set, in rows.
    pub batch: u32,
    /// Instances in service.
    pub instances: usize,
    /// Changes so far.
    pub changes: u64,
}

/// Appends the families of models that tune themselves, which Triton does not have.
pub fn tuning(text: &mut String, rows: &[TuningRow]) {
    if rows.is_empty() {
        return;
    }
    let mut series = |name, help, kind, value: fn(&TuningRow) -> f64| {
        family(text, name, help, kind);
        rows.iter().for_each(|row| sample(text, name, &row.labels, value(row)));
    };
    let objective = "Time that 99 of 100 requests are to be answered within";
    series("alipes_tuning_objective_seconds", objective, "gauge", |row| row.objective.as_secs_f64());
    let delay = "Longest wait for company that a model has chosen";
    series("alipes_tuning_queue_delay_seconds", delay, "gauge", |row| row.queue_delay.as_secs_f64());
    let batch = "Rows of the batch that a model has chosen";
    series("alipes_tuning_batch_rows", batch, "gauge", |row| f64::from(row.batch));
    let instances = "Instances that a model has chosen to have in service";
    series("alipes_tuning_instances", instances, "gauge", |row| row.instances as f64);
    let changes = "Changes that a model has made, those that it took back among them";
    series("alipes_tuning_changes_total", changes, "counter", |row| row.changes as f64);
}

/// Appends the families of network threads, which Triton does not have.
pub fn turns(text: &mut String, readings: &[TurnReading]) {
    let mut series = |name, help, kind, value: fn(&TurnReading) -> f64| {
        family(text, name, help, kind);
        readings.iter().for_each(|reading| {
            sample(text, name, &format!("thread=\"{}\"", reading.thread), value(reading));
        });
    };
    let longest = "Longest time in seconds that a network thread has spent on one task without serving others";
    series("alipes_network_longest_turn_seconds", longest, "gauge", |reading| reading.longest.as_secs_f64());
    let long = "Turns of a network thread that were longer than is logged";
    series("alipes_network_long_turns_total", long, "counter", |reading| reading.long_turns as f64);
}

/// Metrics of the payload log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadRow {
    /// Payloads that were sent.
    pub sent: u64,
    /// Payloads that could not be sent.
    pub failed: u64,
    /// Payloads for which there was no room.
    pub dropped: u64,
    /// Bytes that wait.
    pub waiting_bytes: u64,
}

/// Appends the families of the payload log, which Triton does not have.
pub fn payloads(text: &mut String, row: &PayloadRow) {
    let name = "alipes_logged_payloads_total";
    family(text, name, "Requests and responses drawn for the payload log, by what became of them", "counter");
    for (outcome, count) in [("sent", row.sent), ("failed", row.failed), ("dropped", row.dropped)] {
        sample(text, name, &format!("outcome=\"{outcome}\""), count as f64);
    }
    let name = "alipes_logged_payloads_waiting_bytes";
    gauge(text, name, "Bytes of the payload log that wait to be sent", row.waiting_bytes as f64);
}

/// Appends which alipes this is, in the way of `nv_build_info` and others: a gauge of 1 whose label says it.
pub fn build(text: &mut String, version: &str) {
    family(text, "alipes_build_info", "Version of alipes that serves", "gauge");
    sample(text, "alipes_build_info", &format!("version=\"{}\"", escape(version)), 1.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_network_thread_shows_its_turns() {
        let mut text = String::new();
        let longest = Duration::from_millis(252);
        turns(&mut text, &[TurnReading { thread: 1, longest, long_turns: 7 }]);
        for line in [
            "# TYPE alipes_network_longest_turn_seconds gauge",
            r#"alipes_network_longest_turn_seconds{thread="1"} 0.252"#,
            "# TYPE alipes_network_long_turns_total counter",
            r#"alipes_network_long_turns_total{thread="1"} 7"#,
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line} in {text}");
        }
    }

    #[test]
    fn processor_time_is_shown_of_those_that_have_some_of_their_own() {
        let mut text = String::new();
        let row = |instance, cpu_s| WorkerRow {
            labels: Labels::of_model("m", 1, "", &Default::default()).with("instance", instance),
            up: true,
            restarts: 0,
            cpu_s,
        };
        workers(&mut text, &[row("a", Some(1.25)), row("b", None)]);
        processes(&mut text, &ProcessRow { server_s: 2.5, script_s: Some(0.5), processors: 4 });
        for line in [
            "# TYPE alipes_worker_cpu_seconds_total counter",
            r#"alipes_worker_cpu_seconds_total{instance="a",model="m",version="1"} 1.25"#,
            "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 2.5",
            "# TYPE alipes_script_cpu_seconds_total counter\nalipes_script_cpu_seconds_total 0.5",
            "# TYPE alipes_processors gauge\nalipes_processors 4",
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line} in {text}");
        }
        let mut text = String::new();
        workers(&mut text, &[row("b", None)]);
        processes(&mut text, &ProcessRow { server_s: 2.5, script_s: None, processors: 4 });
        assert!(!text.contains("alipes_worker_cpu") && !text.contains("script"), "{text}");
    }

    #[test]
    fn the_version_of_the_server_is_a_label() {
        let mut text = String::new();
        build(&mut text, "1.2.3");
        assert!(text.contains("# TYPE alipes_build_info gauge\nalipes_build_info{version=\"1.2.3\"} 1\n"), "{text}");
    }
}
