//! The verbs of the server, the same for every protocol: one file per verb.

#![forbid(unsafe_code)]

mod caller_end;
mod classification;
mod cloud_event;
mod explain;
mod explain_tuning;
mod finishing;
pub mod generate;
pub mod graph;
mod graph_runs;
mod infer;
mod log;
mod metadata;
mod model_responses;
pub mod offload;
pub mod payloads;
pub mod predict;
mod repository;
pub mod request_id;
mod sequences;
mod shadow;
mod shared_memory;
mod span;
mod statistics;
pub mod stream;
mod trace;
mod traffic;
mod uuids;

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use alipes_protocol::{Code, InferError};
pub use explain::Explained;
pub use log::FILE_IS_FIXED as LOG_FILE_IS_FIXED;
pub use metadata::{ModelMetadata, PortMetadata, ServerMetadata};
pub use statistics::ModelStatistics;
pub use trace::FILE_IS_FIXED as TRACE_FILE_IS_FIXED;

// The types of the runtime that HTTP and gRPC encode, so that neither needs to know the runtime.
pub use alipes_runtime::cache::{BodyKey, Cached, Encoded};
pub use alipes_runtime::model::ModelVersion;
pub use alipes_runtime::pages::Pages;
pub use alipes_runtime::registry::IndexEntry;
pub use alipes_runtime::similar::similar;
pub use alipes_runtime::traffic::ShadowSettings;

use alipes_gpu::GpuMeter;
use alipes_request::inflight::Inflight;
use alipes_runtime::context::Context;
use alipes_shared_memory::Regions;
use alipes_stats::access::{AccessRecord, Spoken};
use alipes_stats::cpu::CpuMeter;
use alipes_stats::events::Event;
use alipes_trace_export::Traces;
use graph_runs::GraphRuns;
use payloads::Payloads;
use uuids::Uuids;

/// The version of alipes. `/v2` says Triton's, which clients of Triton compare.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The running service: HTTP and gRPC both call it, so that they cannot disagree.
pub struct Service {
    /// What the drivers share with it.
    pub context: Arc<Context>,
    /// Inference requests not yet answered.
    pub inflight: Arc<Inflight>,
    /// Memory that clients share with the server.
    pub regions: Arc<Regions>,
    /// Which requests are traced.
    pub traces: Traces,
    /// The log of requests and responses.
    pub payloads: Payloads,
    /// Where metrics are offered, once the server listens: `host:port`, or `unix:` and a path.
    pub metrics_address: OnceLock<String>,
    graph_runs: Arc<GraphRuns>,
    event_ids: Uuids,
    cpu: CpuMeter,
    gpus: GpuMeter,
}

/// Handlers read the registry, the events and the settings of the log as the service's own.
impl Deref for Service {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl Service {
    /// A service without models.
    pub fn new(context: Arc<Context>) -> Service {
        let watched = &context.config.gpu_metrics;
        Service {
            inflight: Arc::default(),
            regions: Arc::new(Regions::new(context.config.shared_memory_max_regions)),
            traces: Traces::new(&context.config.trace, &context.events),
            payloads: Payloads::new(context.config.payload_log.as_ref()),
            metrics_address: OnceLock::new(),
            graph_runs: Arc::default(),
            event_ids: Uuids::default(),
            cpu: CpuMeter::default(),
            gpus: GpuMeter::start(&watched.uuids, Duration::from_millis(watched.interval_ms)),
            context,
        }
    }

    /// The next event for the log; none when the deadline passes, or when the log is closed and all of it was given.
    ///
    /// Who asks again and again is awake when a network thread is not: this looks for turns that do not end.
    pub fn next_event(&self, deadline: Instant) -> Option<Event> {
        self.turns.report_overdue();
        self.events.next(deadline)
    }

    /// The record of a request whose head has arrived, where the log is verbose: else one look at a flag.
    #[inline]
    pub fn record(&self, spoken: Spoken, method: &str, path: &str, peer: Option<IpAddr>) -> Option<AccessRecord> {
        let record = || AccessRecord::begin(&self.events, spoken, method, path, peer);
        self.log.is_verbose().then(record)
    }

    /// Whether the server runs.
    pub fn server_live(&self) -> bool {
        true
    }

    /// Whether every model that should be ready is; where readiness is strict, each of them is checked.
    pub async fn server_ready(&self) -> bool {
        if !self.registry.is_ready() || self.inflight.is_closed() {
            return false;
        }
        !self.config.strict_readiness || self.registry.all_ready().await
    }

    /// The version of a model that a caller asked for; an empty version asks for the highest.
    ///
    /// # Errors
    ///
    /// `NotFound` for an unknown name or version, `Unavailable` for a version that does not serve yet or any more,
    /// `InvalidArgument` for a version that is no number.
    pub fn lookup(&self, name: &str, version: &str) -> Result<Arc<ModelVersion>, InferError> {
        self.registry.find(name, version)
    }

    /// The version of a model that a caller asked for with an inference: where the caller names no version and the
    /// model's requests are divided among several, it is one of these. `header` reads a header of the request.
    ///
    /// # Errors
    ///
    /// As for `lookup`.
    #[inline]
    pub fn lookup_divided<'a>(
        &self,
        name: &str,
        version: &str,
        header: impl FnOnce(&str) -> Option<&'a [u8]>,
    ) -> Result<Arc<ModelVersion>, InferError> {
        let model = self.lookup(name, version)?;
        Ok(self.divide(model, version, header))
    }

    /// The version of a model that a caller asked for at an endpoint that gives each request one response.
    ///
    /// # Errors
    ///
    /// As for `lookup_divided`, and `Unsupported`, with the endpoint's name, for a decoupled model.
    pub fn lookup_unary<'a>(
        &self,
        name: &str,
        version: &str,
        endpoint: &str,
        header: impl FnOnce(&str) -> Option<&'a [u8]>,
    ) -> Result<Arc<ModelVersion>, InferError> {
        let model = self.lookup_divided(name, version, header)?;
        if model.is_decoupled() {
            let text = format!("{endpoint} doesn't support models with decoupled transaction policy");
            return Err(InferError::new(Code::Unsupported, text));
        }
        Ok(model)
    }
}
