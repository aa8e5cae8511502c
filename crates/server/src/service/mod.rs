//! What can be asked of the server, whichever door the question came through.

mod classification;
mod explain;
pub mod generate;
mod infer;
mod log;
mod metadata;
mod repository;
mod sequences;
mod shared_memory;
mod statistics;
pub mod stream;
mod trace;

use std::sync::Arc;

use alipes_protocol::{Code, InferError};
pub use explain::Explained;
pub use log::FILE_IS_FIXED as LOG_FILE_IS_FIXED;
pub use metadata::{ModelMetadata, PortMetadata, ServerMetadata};
pub use statistics::ModelStatistics;
pub use trace::FILE_IS_FIXED as TRACE_FILE_IS_FIXED;

use crate::books::cpu::CpuMeter;
use crate::books::custom::CustomMetrics;
use crate::budget::Budget;
use crate::cache::ResponseCache;
use crate::control::ControlQueue;
use crate::events::EventQueue;
use crate::inflight::Inflight;
use crate::limiter::Limiter;
use crate::log::Log;
use crate::model::ModelVersion;
use crate::reactors::Reactors;
use crate::regions::Regions;
use crate::registry::Registry;
use crate::spec::ServerConfig;
use crate::trace::Traces;
use crate::workers::fleet::Fleet;

/// The running service: both doors call it, and neither decides anything itself.
pub struct Service {
    /// Its configuration.
    pub config: ServerConfig,
    /// What is ready now.
    pub registry: Registry,
    /// Requests for the control plane.
    pub control: ControlQueue,
    /// Inference requests not yet answered.
    pub inflight: Arc<Inflight>,
    /// What requests and answers in flight take.
    pub budget: Arc<Budget>,
    /// Where tasks of the network threads are started.
    pub reactors: Reactors,
    /// Every worker process.
    pub workers: Fleet,
    /// Metrics that models keep.
    pub metrics: CustomMetrics,
    /// Memory that clients share with the server.
    pub regions: Arc<Regions>,
    /// What the log is told.
    pub events: Arc<EventQueue>,
    /// What the log is to hold.
    pub log: Log,
    /// Which requests are traced.
    pub traces: Traces,
    /// Who may execute, where that is limited.
    pub limiter: Option<Arc<Limiter>>,
    /// Answers that are kept, where any are.
    pub cache: Option<Arc<ResponseCache>>,
    cpu: CpuMeter,
}

impl Service {
    /// A service without models.
    pub fn new(config: ServerConfig) -> Service {
        let regions = Arc::new(Regions::new(config.shared_memory_max_regions));
        let events = Arc::default();
        let budget = Budget::new(config.inflight_bytes);
        let cache = || Arc::new(ResponseCache::new(config.response_cache_bytes, &budget));
        Service {
            cache: (config.response_cache_bytes > 0).then(cache),
            limiter: config.rate_limit.as_ref().map(|limits| Arc::new(Limiter::new(limits))),
            log: Log::new(config.log.clone()),
            traces: Traces::new(&config.trace, &events),
            budget,
            config,
            regions,
            registry: Registry::default(),
            control: ControlQueue::default(),
            inflight: Arc::default(),
            reactors: Reactors::default(),
            workers: Fleet::default(),
            metrics: CustomMetrics::default(),
            events,
            cpu: CpuMeter::default(),
        }
    }

    /// Whether the server runs.
    pub fn server_live(&self) -> bool {
        true
    }

    /// Whether every model that should serve does; where readiness is strict, each of them is asked.
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
    /// `NotFound` for an unknown name or version, `InvalidArgument` for a version that is no number.
    pub fn lookup(&self, name: &str, version: &str) -> Result<Arc<ModelVersion>, InferError> {
        self.registry.find(name, version)
    }

    /// The version of a model that a caller asked for through a door that gives each request one answer.
    ///
    /// # Errors
    ///
    /// As for `lookup`, and `Unsupported`, with the door's name, for a model that may give any number of responses.
    pub fn lookup_unary(&self, name: &str, version: &str, door: &str) -> Result<Arc<ModelVersion>, InferError> {
        let model = self.lookup(name, version)?;
        if model.is_decoupled() {
            let text = format!("{door} doesn't support models with decoupled transaction policy");
            return Err(InferError::new(Code::Unsupported, text));
        }
        Ok(model)
    }
}
