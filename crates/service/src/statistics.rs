//! Statistics for clients and Prometheus.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Instant;

use alipes_gpu::GpuReading;
use alipes_protocol::InferError;
use alipes_protocol::limits::VERSIONS_AT_ONCE;
use alipes_runtime::cache::Cached;
use alipes_runtime::model::ModelVersion;
use alipes_runtime::model::driver::{HostProcess, Introspection, WorkerStatus};
use alipes_runtime::registry::version_number;
use alipes_runtime::tuning::Tuned;
use alipes_stats::cpu::process_seconds;
use alipes_stats::metrics::{self, Choice, GpuRow, ModelRow, ProcessRow, SequencesRow, TuningRow, WorkerRow};
use alipes_stats::statistics::Snapshot;

use super::{Service, VERSION};

/// What a model version did so far.
#[derive(Clone, Debug)]
pub struct ModelStatistics {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: i64,
    /// Its counters.
    pub snapshot: Snapshot,
}

impl Service {
    /// Whether so many versions are served that a network thread would be long about all of them.
    pub fn has_many_versions(&self) -> bool {
        let models = self.registry.models();
        models.values().flat_map(|served| served.versions()).nth(VERSIONS_AT_ONCE).is_some()
    }

    /// Statistics of all models (empty name), of a model's versions (empty version), or of one version. The graph is a
    /// model here.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a name or version that is not served, and for a version that is no number. Source:
    /// Triton's texts.
    pub fn statistics(&self, name: &str, version: &str) -> Result<Vec<ModelStatistics>, InferError> {
        let number = if version.is_empty() { None } else { Some(version_number(version)?) };
        let models = self.registry.models();
        let mut found = Vec::new();
        let mut names: Vec<&String> = models.keys().filter(|key| name.is_empty() || *key == name).collect();
        names.sort_unstable();
        for version in names.iter().flat_map(|name| models[*name].versions()) {
            let spec = &version.spec;
            found.push(ModelStatistics {
                name: spec.name.clone(),
                version: spec.version,
                snapshot: version.statistics.snapshot(),
            });
        }
        if let Some(graph) = self.graph_statistics().filter(|graph| name.is_empty() || graph.name == name) {
            let place = found.partition_point(|statistics| statistics.name < graph.name);
            found.insert(place, graph);
        }
        if !name.is_empty() && found.is_empty() {
            return Err(InferError::invalid(format!("requested model '{name}' is not available")));
        }
        if let Some(number) = number {
            found.retain(|statistics| statistics.version == number);
            if found.is_empty() {
                let text = format!("requested model version is not available for model '{name}'");
                return Err(InferError::invalid(text));
            }
        }
        Ok(found)
    }

    /// The Prometheus exposition of everything.
    pub fn metrics_text(&self) -> String {
        let models = self.registry.models();
        let mut versions: Vec<_> = models.values().flat_map(|served| served.versions()).collect();
        versions.sort_unstable_by(|a, b| (&a.spec.name, a.spec.version).cmp(&(&b.spec.name, b.spec.version)));
        let (now, quantiles) = (alipes_clock::now(), &self.config.summary_quantiles);
        let mut rows: Vec<ModelRow> = versions
            .iter()
            .map(|version| ModelRow {
                labels: version.labels.clone(),
                statistics: version.statistics.snapshot(),
                waiting: version.waiting() + version.cache.as_ref().map_or(0, Cached::waiting),
                requests: version.requests(),
                longest_wait_s: version.longest_waiting().map_or(0.0, |arrived| seconds_between(arrived, now)),
                cached: version.cache.is_some(),
                load_s: version.load_time.get().copied().unwrap_or_default().as_secs_f64(),
                first_responses: version.statistics.first_responses(),
                summaries: version.statistics.summaries(now, quantiles),
            })
            .collect();
        rows.extend(self.graph_row());
        let choice =
            Choice { durations: self.config.counter_latencies, histograms: self.config.request_histograms, quantiles };
        let cpu = self.config.cpu_metrics.then(|| self.cpu.read());
        let mut text = metrics::exposition(&rows, cpu, &choice);
        let gpus: Vec<GpuRow> = self.gpus.readings().into_iter().map(gpu_row).collect();
        metrics::gpus(&mut text, &gpus);
        let statuses: Vec<_> = versions.iter().flat_map(|version| worker_statuses(version)).collect();
        let workers: Vec<WorkerRow> =
            statuses.iter().map(|(version, status)| worker_row(version, status, self.config.cpu_metrics)).collect();
        metrics::workers(&mut text, &workers);
        let row = self.config.cpu_metrics.then(|| process_row(statuses.iter().map(|(_, status)| status)));
        row.flatten().iter().for_each(|row| metrics::processes(&mut text, row));
        let streaming = versions
            .iter()
            .filter_map(|version| Some((version.labels.clone(), version.driver.sequence_states()?.live())));
        let sequences: Vec<SequencesRow> = streaming.map(|(labels, live)| SequencesRow { labels, live }).collect();
        metrics::sequences(&mut text, &sequences);
        let tuning: Vec<TuningRow> = versions.iter().filter_map(|version| tuning_row(version)).collect();
        metrics::tuning(&mut text, &tuning);
        metrics::turns(&mut text, &self.turns.readings());
        if let Some(cache) = &self.cache {
            metrics::cache(&mut text, &rows, cache.usage(), self.config.counter_latencies);
        }
        if let Some(row) = self.payloads.row() {
            metrics::payloads(&mut text, &row);
        }
        metrics::build(&mut text, VERSION);
        self.metrics.expose(&mut text);
        text
    }
}

fn seconds_between(earlier: Instant, later: Instant) -> f64 {
    later.saturating_duration_since(earlier).as_secs_f64()
}

fn tuning_row(version: &ModelVersion) -> Option<TuningRow> {
    let Tuned { objective, setting, made, .. } = version.tuning.as_ref()?.show();
    Some(TuningRow {
        labels: version.labels.clone(),
        objective: objective.p99,
        queue_delay: setting.queue_delay,
        batch: setting.batch,
        instances: setting.instances,
        changes: made,
    })
}

fn gpu_row((uuid, reading): (String, GpuReading)) -> GpuRow {
    let bytes = |size: Option<u64>| size.map(|size| size as f64);
    GpuRow {
        uuid,
        values: [
            reading.utilization,
            bytes(reading.memory_total_bytes),
            bytes(reading.memory_used_bytes),
            reading.power_usage_w,
            reading.power_limit_w,
            reading.energy_j,
        ],
    }
}

fn worker_statuses(version: &Arc<ModelVersion>) -> Vec<(&Arc<ModelVersion>, WorkerStatus)> {
    let Introspection::Workers(workers) = version.driver.introspect() else { return Vec::new() };
    workers.into_iter().map(|worker| (version, worker)).collect()
}

fn worker_row(version: &ModelVersion, worker: &WorkerStatus, shows_cpu: bool) -> WorkerRow {
    let cpu_s = match worker.process.filter(|_| shows_cpu) {
        Some(HostProcess::Worker(number)) => process_seconds(&number.to_string()),
        // What of its time is this instance's, nobody knows.
        Some(HostProcess::Script(_)) | None => None,
    };
    WorkerRow {
        labels: version.labels.with("instance", &worker.instance),
        up: worker.up,
        restarts: worker.restarts,
        cpu_s,
    }
}

fn process_row<'a>(mut workers: impl Iterator<Item = &'a WorkerStatus>) -> Option<ProcessRow> {
    // A server has one script at most.
    let script = workers.find_map(|worker| match worker.process {
        Some(HostProcess::Script(number)) => Some(number),
        _ => None,
    });
    Some(ProcessRow {
        server_s: process_seconds("self")?,
        script_s: script.and_then(|number| process_seconds(&number.to_string())),
        processors: available_parallelism().map_or(1, NonZero::get),
    })
}
