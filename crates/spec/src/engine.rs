//! Engines: which one runs a model, and its settings. A new native engine is a variant of [`EngineSpec`].

use std::collections::BTreeMap;

use alipes_protocol::limits;
use serde::Deserialize;

use crate::native::NativeSpec;

/// Which engine runs a model.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum EngineSpec {
    /// ONNX Runtime, through the library of the installed wheel.
    Onnxruntime(OnnxruntimeSpec),
    /// Python, in one process per instance or on threads of a script.
    Worker(WorkerSpec),
    /// A graph of other models.
    Ensemble(EnsembleSpec),
    /// The server itself, which keeps the state of each sequence.
    Streaming(StreamingSpec),
    /// A native step: the server computes, and there is no file.
    Native(NativeSpec),
}

impl EngineSpec {
    /// The name of the kind, as the specification spells it.
    pub fn kind(&self) -> &'static str {
        match self {
            EngineSpec::Onnxruntime(_) => "onnxruntime",
            EngineSpec::Worker(_) => "worker",
            EngineSpec::Ensemble(_) => "ensemble",
            EngineSpec::Streaming(_) => "streaming",
            EngineSpec::Native(_) => "native",
        }
    }

    /// Whether the engine reads more of a request than its tensors.
    pub fn sees_requests(&self) -> bool {
        match self {
            EngineSpec::Onnxruntime(_) | EngineSpec::Native(_) => false,
            EngineSpec::Worker(_) | EngineSpec::Ensemble(_) | EngineSpec::Streaming(_) => true,
        }
    }
}

/// Settings of a session of ONNX Runtime.
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
    /// Execution providers of the instances on a GPU, the preferred one first.
    #[serde(default)]
    pub gpu_providers: Vec<ProviderSpec>,
    /// Absolute paths of the libraries that those providers need, each after those that it needs itself.
    #[serde(default)]
    pub gpu_libraries: Vec<String>,
}

/// An execution provider of ONNX Runtime, and its settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderSpec {
    /// Which one.
    pub kind: ProviderKind,
    /// Its options in its own words, without the device's number.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
}

/// Which execution provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// CUDA.
    Cuda,
    /// TensorRT.
    Tensorrt,
}

/// Workers of a Python model: processes of the server's, or threads of the script that started it. A limit of 0 means
/// no limit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerSpec {
    /// Interpreter and script, as absolute paths; empty where a script has the instances.
    pub command: Vec<String>,
    /// Number of the inherited socket over which a script takes the instances; none where each is a process.
    pub attached: Option<i32>,
    /// Environment variables on top of the server's.
    pub environment: BTreeMap<String, String>,
    /// Under which key a process may wait to go on as the first worker; none where each is started.
    #[serde(default)]
    pub waiting: Option<String>,
    /// Requests that an instance works on side by side, as far as it says; 0 where it takes one batch after the other.
    #[serde(default)]
    pub side_by_side: u32,
    /// Set-up of the process, passed on unread.
    pub setup: serde_json::Value,
    /// Beginnings of paths that its errors must not show, each with what stands for it.
    #[serde(default)]
    pub hidden: BTreeMap<String, String>,
    /// Start timeout, in seconds.
    pub start_timeout_s: f64,
    /// Execution timeout, in seconds.
    pub execute_timeout_s: f64,
    /// Timeout of `finalize`, in seconds.
    pub stop_timeout_s: f64,
    /// Most resident memory of a worker, in bytes.
    pub max_memory_bytes: u64,
    /// Most bytes of earlier inputs that a worker may hold leases on.
    pub max_leased_bytes: u64,
}

/// Steps of an ensemble.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnsembleSpec {
    /// In the configuration's order.
    pub steps: Vec<StepSpec>,
    /// Most calls of one step in flight at a time; 0 for any number.
    #[serde(default)]
    pub max_inflight_requests: u32,
}

/// One step of an ensemble: its model, and the ensemble's tensor behind each of the model's.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepSpec {
    /// Name of the model.
    pub model: String,
    /// Version of the model; -1 for the highest.
    pub version: i64,
    /// The ensemble's tensor for each input of the model.
    pub inputs: BTreeMap<String, String>,
    /// The ensemble's tensor for each output of the model.
    pub outputs: BTreeMap<String, String>,
    /// The model may give any number of responses.
    pub decoupled: bool,
}

/// A streaming model, whose state the server keeps for each sequence.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamingSpec {
    /// Arithmetic of an update.
    pub update: Update,
    /// Most live sequences.
    #[serde(default = "default_streaming_max_sequences")]
    pub max_sequences: usize,
    /// A sequence ends when it was idle for so long, in microseconds.
    pub max_idle_us: u64,
}

/// Arithmetic of an update, sized in samples and channels.
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
        /// Channels of each output; 0 for an output with one channel and no axis for it.
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
        /// Channels of a prediction; 0 where it has one channel and no axis for it.
        channels: usize,
        /// Samples of a prediction.
        kernel: usize,
        /// The first means divide by the number of predictions so far.
        #[serde(default)]
        unbiased: bool,
    },
}

fn default_streaming_max_sequences() -> usize {
    limits::STREAMING_MAX_SEQUENCES
}
