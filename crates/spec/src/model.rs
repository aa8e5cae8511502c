//! The specification of one model version: tensors, instances, scheduling, engine.

use std::collections::BTreeMap;

use alipes_protocol::Datatype;
use serde::Deserialize;

use crate::call_endpoint::CallEndpoint;
use crate::engine::EngineSpec;
use crate::placement::Placement;
use crate::read::{datatype, known_schema};
use crate::resources::LimitSpec;
use crate::scheduling::Scheduling;
use crate::tuning::TuningSpec;
use crate::warmup::SampleSpec;

/// One version of a model, ready to be built.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// Schema of this document.
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
    /// It came without a configuration: inputs take numbers of any datatype, and an only one a tensor of any name.
    #[serde(default)]
    pub is_bare: bool,
    /// Inputs that the server computes from the batch.
    #[serde(default)]
    pub batch_inputs: Vec<BatchInputSpec>,
    /// Outputs that are split like an input rather than by rows.
    #[serde(default)]
    pub batch_outputs: Vec<BatchOutputSpec>,
    /// Scheduling of its requests.
    pub scheduling: Scheduling,
    /// The model tunes itself, where it says what for.
    #[serde(default)]
    pub tuning: Option<TuningSpec>,
    /// A request may have any number of responses.
    #[serde(default)]
    pub decoupled: bool,
    /// Plain HTTP requests to `/<name>` reach it.
    #[serde(default)]
    pub endpoint: Option<CallEndpoint>,
    /// Responses are cached, where the server has a cache.
    #[serde(default)]
    pub response_cache: bool,
    /// Names of the instances.
    pub instances: Vec<String>,
    /// Names of instances that are loaded and never used.
    #[serde(default)]
    pub passive_instances: Vec<String>,
    /// Where instances run, by their names; those that are not named run on the processor.
    #[serde(default)]
    pub placements: BTreeMap<String, Placement>,
    /// Resources that an execution takes, by instance, where the server limits them.
    #[serde(default)]
    pub limits: Vec<LimitSpec>,
    /// Warm-up samples, which each instance executes before the version is ready.
    #[serde(default)]
    pub warmup: Vec<SampleSpec>,
    /// The engine that runs it.
    pub engine: EngineSpec,
    /// The configuration in HTTP's form.
    pub config_json: String,
    /// The configuration in gRPC's form: a serialized `inference.ModelConfig` in base64.
    pub config_proto: String,
    /// Further labels of the model's metrics.
    pub metric_tags: BTreeMap<String, String>,
    /// Upper edges of the buckets of its histograms, by the family's name.
    #[serde(default)]
    pub histogram_buckets: BTreeMap<String, Vec<f64>>,
}

impl ModelSpec {
    /// Where an instance of this name runs.
    pub fn placement(&self, instance: &str) -> Placement {
        self.placements.get(instance).copied().unwrap_or_default()
    }
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
    /// A request may leave it out (inputs only).
    #[serde(default)]
    pub optional: bool,
    /// Requests of different shapes may share a batch (inputs only).
    #[serde(default)]
    pub allow_ragged_batch: bool,
    /// Names of the classes, by index (outputs only).
    #[serde(default)]
    pub labels: Vec<String>,
}

/// Inputs that the server computes from the batch, all with the same content.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchInputSpec {
    /// Their content: Triton's word for it, in lower case.
    pub kind: BatchInputKind,
    /// Their names in the model.
    pub targets: Vec<String>,
    /// `INT32` or `FP32`.
    #[serde(deserialize_with = "datatype")]
    pub datatype: Datatype,
    /// The input that they describe.
    pub source: String,
}

/// Content of an input that the server computes from the batch.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchInputKind {
    /// Elements of each request.
    BatchElementCount,
    /// Offset of the end of each request.
    BatchAccumulatedElementCount,
    /// Offset of the begin of each request, then that of the end of the last.
    BatchAccumulatedElementCountWithZero,
    /// Elements of the largest request, as a size.
    BatchMaxElementCountAsShape,
    /// The sizes of each row, as rows.
    BatchItemShape,
    /// The sizes of each row, in one dimension.
    BatchItemShapeFlatten,
}

/// Outputs that are split like an input.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchOutputSpec {
    /// Their names.
    pub targets: Vec<String>,
    /// The input whose shapes they take.
    pub source: String,
}
