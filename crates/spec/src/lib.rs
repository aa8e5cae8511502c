//! What the control plane says once, as JSON with a version: the server's configuration and each model's specification.
//!
//! Both are validated in Python, where messages can name file and line; here unknown fields are refused, so that the
//! two sides cannot drift apart unnoticed.

use std::collections::BTreeMap;

use alipes_protocol::{Datatype, limits};
use serde::{Deserialize, Deserializer, de::Error};

pub use self::doors::{ConnectionSpec, Endpoint, KeepaliveSpec, RestrictionSpec, TlsSpec};
pub use self::resources::{LimitSpec, ResourceSpec};
pub use self::sequences::{ControlKind, ControlSpec, SequenceSpec, StateSpec, StrategySpec};
pub use self::warmup::{SampleData, SampleInput, SampleSpec};
use crate::forwarding::Forwarding;
use crate::log::LogSettings;
use crate::trace::TraceConfig;

mod doors;
pub mod forwarding;
pub mod log;
mod resources;
mod sequences;
pub mod trace;
mod warmup;

/// Version of the JSON documents that this build understands.
pub const SCHEMA: u32 = 1;

/// Which repository control requests are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlMode {
    /// All models are loaded at start, none later.
    None,
    /// The repository is watched.
    Poll,
    /// Models are loaded and unloaded on request.
    Explicit,
}

/// How much work is spent on compression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompressionLevel {
    /// None: messages leave as they are.
    #[default]
    None,
    /// Little.
    Low,
    /// The usual amount.
    Medium,
    /// Much.
    High,
}

/// The server's configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// Version of this document.
    #[serde(deserialize_with = "known_schema")]
    pub schema: u32,
    /// Name that the server metadata gives.
    pub id: String,
    /// The HTTP endpoint.
    pub http: Endpoint,
    /// The gRPC endpoint.
    pub grpc: Endpoint,
    /// The metrics endpoint.
    pub metrics: Endpoint,
    /// Network threads; 0 chooses half the cores, at least two.
    #[serde(default)]
    pub network_threads: usize,
    /// Largest JSON body, or raw input, in bytes.
    #[serde(default = "default_http_max_input_bytes")]
    pub http_max_input_bytes: usize,
    /// Bytes that the requests and answers in flight may take.
    #[serde(default = "unbounded")]
    pub inflight_bytes: u64,
    /// Headers of HTTP requests that models see as parameters.
    #[serde(default, deserialize_with = "forwarding::pattern")]
    pub http_header_forward_pattern: Option<Forwarding>,
    /// Metadata of gRPC calls that models see as parameters.
    #[serde(default, deserialize_with = "forwarding::pattern")]
    pub grpc_header_forward_pattern: Option<Forwarding>,
    /// Largest gRPC request, in bytes.
    #[serde(default = "default_grpc_max_request_bytes")]
    pub grpc_max_request_bytes: usize,
    /// Largest gRPC request that came compressed, in bytes, once it is expanded.
    #[serde(default = "default_grpc_max_expanded_bytes")]
    pub grpc_max_expanded_bytes: usize,
    /// How much work is spent on making answers to inferences over gRPC smaller.
    #[serde(default)]
    pub grpc_compression_level: CompressionLevel,
    /// What connections may take.
    #[serde(default)]
    pub connections: ConnectionSpec,
    /// How gRPC connections are kept.
    #[serde(default)]
    pub keepalive: KeepaliveSpec,
    /// What HTTP asks a header for.
    #[serde(default)]
    pub http_restricted: Vec<RestrictionSpec>,
    /// What gRPC asks metadata for.
    #[serde(default)]
    pub grpc_restricted: Vec<RestrictionSpec>,
    /// Which control requests are allowed.
    pub control_mode: ControlMode,
    /// Whether the server is ready only while every model is.
    #[serde(default)]
    pub strict_readiness: bool,
    /// How much there is of the resources that executions take; none where nothing is limited.
    #[serde(default)]
    pub rate_limit: Option<Vec<ResourceSpec>>,
    /// Bytes of answers that are kept for models that want it; 0 keeps none.
    #[serde(default)]
    pub response_cache_bytes: usize,
    /// Whether clients may register shared memory.
    #[serde(default)]
    pub allow_client_shm: bool,
    /// Most regions of shared memory that they may have registered at a time.
    #[serde(default = "default_shared_memory_max_regions")]
    pub shared_memory_max_regions: usize,
    /// What the log holds at the start.
    #[serde(default)]
    pub log: LogSettings,
    /// How requests are traced at the start.
    #[serde(default)]
    pub trace: TraceConfig,
    /// Whether the `nv_inference_*_duration_us` counters are shown.
    pub counter_latencies: bool,
    /// Whether Triton's histogram of the time to the first response is kept and shown.
    #[serde(default)]
    pub histogram_latencies: bool,
    /// The quantiles of Triton's summaries of latencies; none where there are no summaries.
    #[serde(default)]
    pub summary_quantiles: Vec<f64>,
    /// Whether the histograms are shown that Triton does not have.
    #[serde(default = "yes")]
    pub request_histograms: bool,
    /// Whether the `nv_cpu_*` gauges are shown.
    pub cpu_metrics: bool,
}

fn default_grpc_max_request_bytes() -> usize {
    limits::GRPC_MAX_MESSAGE_BYTES
}

fn default_grpc_max_expanded_bytes() -> usize {
    limits::GRPC_MAX_EXPANDED_BYTES
}

fn yes() -> bool {
    true
}

fn unbounded() -> u64 {
    u64::MAX
}

fn default_http_max_input_bytes() -> usize {
    limits::HTTP_MAX_INPUT_BYTES
}

fn default_shared_memory_max_regions() -> usize {
    limits::REGIONS_MAX
}

fn default_streaming_max_sequences() -> usize {
    limits::STREAMING_MAX_SEQUENCES
}

/// An input or output of a model as its configuration declares it, without the batch dimension.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Name of the tensor.
    pub name: String,
    /// Element type.
    #[serde(deserialize_with = "datatype")]
    pub datatype: Datatype,
    /// Sizes on the wire; -1 stands for any.
    pub dims: Vec<i64>,
    /// Sizes that the backend sees, where they differ.
    #[serde(default)]
    pub reshape: Option<Vec<i64>>,
    /// The request may leave it out (inputs only).
    #[serde(default)]
    pub optional: bool,
    /// Requests of different shapes may share a batch (inputs only).
    #[serde(default)]
    pub allow_ragged_batch: bool,
    /// Names of the classes, by index (outputs only).
    #[serde(default)]
    pub labels: Vec<String>,
}

/// Inputs of a model that are made of the batch, all alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchInputSpec {
    /// What they hold: Triton's word for it, in lower case.
    pub kind: BatchInputKind,
    /// Their names in the model.
    pub targets: Vec<String>,
    /// `INT32` or `FP32`.
    #[serde(deserialize_with = "datatype")]
    pub datatype: Datatype,
    /// The input that they tell of.
    pub source: String,
}

/// What an input that is made of the batch tells.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchInputKind {
    /// Elements of each request.
    BatchElementCount,
    /// Where each request ends.
    BatchAccumulatedElementCount,
    /// Where each request begins, and where the last one ends.
    BatchAccumulatedElementCountWithZero,
    /// Elements of the largest request, as a size.
    BatchMaxElementCountAsShape,
    /// The sizes of each row, as rows.
    BatchItemShape,
    /// The sizes of each row, behind one another.
    BatchItemShapeFlatten,
}

/// Outputs of a model that are cut up like an input.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchOutputSpec {
    /// Their names.
    pub targets: Vec<String>,
    /// The input whose shapes they take.
    pub source: String,
}

/// How requests of a model are brought together.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Scheduling {
    /// One request after the other.
    Direct {},
    /// Requests are grouped within a delay.
    Dynamic(DynamicSpec),
    /// Requests of a sequence go to the instance that knows it, one after the other.
    Sequence(SequenceSpec),
}

impl Scheduling {
    /// How sequences are scheduled, where requests come in such.
    pub fn sequences(&self) -> Option<&SequenceSpec> {
        match self {
            Scheduling::Sequence(spec) => Some(spec),
            Scheduling::Direct {} | Scheduling::Dynamic(_) => None,
        }
    }
}

/// How requests are grouped, who goes first, and who may wait.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DynamicSpec {
    /// Sizes in rows to aim for; empty means the largest batch.
    pub preferred_batch_sizes: Vec<u32>,
    /// Longest wait for company, in microseconds.
    pub max_queue_delay_us: u64,
    /// Answers leave in the order in which requests came.
    #[serde(default)]
    pub preserve_ordering: bool,
    /// Levels of priority, 1 the highest; 0 where priorities mean nothing.
    #[serde(default)]
    pub priority_levels: u64,
    /// The level of requests that name none.
    #[serde(default)]
    pub default_priority_level: u64,
    /// Limits on waiting at levels without limits of their own.
    #[serde(default)]
    pub default_queue_policy: QueuePolicySpec,
    /// Levels with limits of their own.
    #[serde(default)]
    pub priority_queue_policies: Vec<LevelPolicySpec>,
    /// Nothing is executed before so many requests wait, once.
    #[serde(default)]
    pub held_until: usize,
}

/// Limits on waiting. Limits of zero are none.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueuePolicySpec {
    /// A request that has waited too long waits on behind the others, rather than being refused.
    pub delay: bool,
    /// How long is too long, in microseconds.
    pub default_timeout_us: u64,
    /// A request may bring a shorter limit of its own.
    pub allow_timeout_override: bool,
    /// Most requests that may wait.
    pub max_queue_size: usize,
}

/// Limits on waiting at one level of priority.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelPolicySpec {
    /// The level.
    pub level: u64,
    /// Its limits.
    pub policy: QueuePolicySpec,
}

/// Which engine runs the model, and how.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum EngineSpec {
    /// ONNX Runtime, through the library of the installed wheel.
    Onnxruntime(OnnxruntimeSpec),
    /// Python, in a process per instance.
    Worker(WorkerSpec),
    /// Other models, one after the other.
    Ensemble(EnsembleSpec),
    /// The server itself, which keeps the state of each sequence.
    Streaming(StreamingSpec),
}

impl EngineSpec {
    /// The name of the kind, as the specification spells it.
    pub fn kind(&self) -> &'static str {
        match self {
            EngineSpec::Onnxruntime(_) => "onnxruntime",
            EngineSpec::Worker(_) => "worker",
            EngineSpec::Ensemble(_) => "ensemble",
            EngineSpec::Streaming(_) => "streaming",
        }
    }

    /// Whether what runs the model looks at more of a request than its tensors.
    pub fn sees_requests(&self) -> bool {
        match self {
            EngineSpec::Onnxruntime(_) => false,
            EngineSpec::Worker(_) | EngineSpec::Ensemble(_) | EngineSpec::Streaming(_) => true,
        }
    }
}

/// How ONNX Runtime runs a model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnnxruntimeSpec {
    /// Absolute path of the library.
    pub library: String,
    /// Absolute path of the model file.
    pub model_path: String,
    /// Threads within an operator; 1 means the calling thread alone.
    pub intra_op_threads: i32,
    /// Threads across operators.
    pub inter_op_threads: i32,
    /// `sequential` or `parallel`.
    pub execution_mode: String,
    /// `disable`, `basic`, `extended` or `all`.
    pub graph_optimization: String,
    /// Further session configuration entries.
    pub session_config: BTreeMap<String, String>,
    /// Whether the engine keeps its own memory arena.
    pub memory_arena: bool,
}

/// How the processes of a Python model are run. Limits of zero are none.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerSpec {
    /// Interpreter and script, absolute.
    pub command: Vec<String>,
    /// Variables on top of the server's own.
    pub environment: BTreeMap<String, String>,
    /// What the process is told; passed on as it is.
    pub setup: serde_json::Value,
    /// Longest time until a worker is ready, in seconds.
    pub start_timeout_s: f64,
    /// Longest execution, in seconds.
    pub execute_timeout_s: f64,
    /// Longest time that a worker may take to finalize, in seconds.
    pub stop_timeout_s: f64,
    /// Most memory in RAM that a worker may use, in bytes.
    pub max_memory_bytes: u64,
    /// Most bytes of earlier inputs that a worker may keep in view.
    pub max_leased_bytes: u64,
}

/// The steps of an ensemble.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnsembleSpec {
    /// In the configuration's order.
    pub steps: Vec<StepSpec>,
    /// Most calls of a step that may be under way at a time; 0 for any number.
    #[serde(default)]
    pub max_inflight_requests: u32,
}

/// One model of an ensemble, and how its tensors are joined to the others.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepSpec {
    /// Name of the model.
    pub model: String,
    /// Its version; -1 for the highest.
    pub version: i64,
    /// The ensemble's tensor for each input of the model.
    pub inputs: BTreeMap<String, String>,
    /// The ensemble's tensor for each output of the model.
    pub outputs: BTreeMap<String, String>,
    /// The model may give any number of responses.
    pub decoupled: bool,
}

/// A model whose state the server keeps.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamingSpec {
    /// What becomes of an update.
    pub update: Update,
    /// Most live sequences.
    #[serde(default = "default_streaming_max_sequences")]
    pub max_sequences: usize,
    /// Silence that ends a sequence, in microseconds.
    pub max_idle_us: u64,
}

/// What becomes of an update, in samples and channels.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Update {
    /// Windows of the newest samples.
    Snapshotter {
        /// New samples of each window.
        stride: usize,
        /// Samples of a window.
        snapshot: usize,
        /// Windows of an update.
        batch: usize,
        /// By output: its channels; zero where it has one and no axis for it.
        channels: Vec<usize>,
    },
    /// The mean of overlapping predictions.
    Averager {
        /// Samples by which each prediction is ahead of the one before it.
        update: usize,
        /// Predictions that make a mean.
        updates: usize,
        /// Predictions of a request.
        batch: usize,
        /// Channels of a prediction; zero where it has one and no axis for it.
        channels: usize,
        /// Samples of a prediction.
        kernel: usize,
        /// The first means are those of the predictions that there are.
        #[serde(default)]
        unbiased: bool,
    },
}

/// One version of a model, ready to be built.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// Version of this document.
    #[serde(deserialize_with = "known_schema")]
    pub schema: u32,
    /// Name of the model.
    pub name: String,
    /// The repository that the name is unique in, where it is not unique in all of them; else empty.
    #[serde(default)]
    pub namespace: String,
    /// Version of the model.
    pub version: i64,
    /// Platform, else backend, as metadata shows it.
    pub platform: String,
    /// Largest batch in rows; 0 where the model has no batch dimension.
    pub max_batch_size: u32,
    /// Inputs in the configuration's order.
    pub inputs: Vec<Port>,
    /// Outputs in the configuration's order.
    pub outputs: Vec<Port>,
    /// Inputs that are made of the batch.
    #[serde(default)]
    pub batch_inputs: Vec<BatchInputSpec>,
    /// Outputs that are cut up like an input rather than by rows.
    #[serde(default)]
    pub batch_outputs: Vec<BatchOutputSpec>,
    /// How requests are brought together.
    pub scheduling: Scheduling,
    /// A request may have any number of responses.
    #[serde(default)]
    pub decoupled: bool,
    /// Answers are kept, where the server has a cache.
    #[serde(default)]
    pub response_cache: bool,
    /// Names of the instances.
    pub instances: Vec<String>,
    /// Names of instances that are loaded and never used.
    #[serde(default)]
    pub passive_instances: Vec<String>,
    /// What executions take, instance by instance, where the server limits that.
    #[serde(default)]
    pub limits: Vec<LimitSpec>,
    /// What each instance executes before it serves.
    #[serde(default)]
    pub warmup: Vec<SampleSpec>,
    /// What runs it.
    pub engine: EngineSpec,
    /// The configuration as HTTP answers it.
    pub config_json: String,
    /// The configuration as gRPC answers it: a serialized `inference.ModelConfig` in base64.
    pub config_proto: String,
    /// Further labels of the model's metrics.
    pub metric_tags: BTreeMap<String, String>,
    /// Upper edges of the buckets of its histograms, by the family's name.
    #[serde(default)]
    pub histogram_buckets: BTreeMap<String, Vec<f64>>,
}

fn known_schema<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let schema = u32::deserialize(deserializer)?;
    if schema == SCHEMA {
        Ok(schema)
    } else {
        Err(D::Error::custom(format!("schema {schema} is not the {SCHEMA} that this build understands")))
    }
}

fn datatype<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Datatype, D::Error> {
    let name = String::deserialize(deserializer)?;
    Datatype::from_name(&name).ok_or_else(|| D::Error::custom(format!("unknown datatype '{name}'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = r#"{"schema":1,"id":"x","http":{"enabled":true,"address":"127.0.0.1","port":0},
        "grpc":{"enabled":false,"address":"","port":0},"metrics":{"enabled":false,"address":"","port":0},
        "control_mode":"none","counter_latencies":true,"cpu_metrics":true}"#;

    #[test]
    fn an_unknown_field_is_refused() {
        assert!(serde_json::from_str::<ServerConfig>(CONFIG).is_ok());
        let more = CONFIG.replace("\"id\"", "\"ids\":1,\"id\"");
        assert!(serde_json::from_str::<ServerConfig>(&more).unwrap_err().to_string().contains("unknown field `ids`"));
    }

    #[test]
    fn another_schema_is_refused() {
        let other = CONFIG.replace("\"schema\":1", "\"schema\":2");
        assert!(serde_json::from_str::<ServerConfig>(&other).unwrap_err().to_string().contains("schema 2"));
    }
}
