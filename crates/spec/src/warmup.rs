//! Warm-up samples, which each instance of a model executes before the model is ready.

use alipes_protocol::Datatype;
use serde::Deserialize;

use crate::read::datatype;

/// One sample of a model's `model_warmup`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleSpec {
    /// Its name, for messages.
    pub name: String,
    /// Requests that are executed together, each of one row.
    pub batch_size: u32,
    /// Number of executions.
    pub count: u32,
    /// Inputs of each request.
    pub inputs: Vec<SampleInput>,
}

/// One input of a sample.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleInput {
    /// Name of the tensor.
    pub name: String,
    /// Element type.
    #[serde(deserialize_with = "datatype")]
    pub datatype: Datatype,
    /// Sizes of one row, without -1.
    pub dims: Vec<i64>,
    /// Its data.
    pub data: SampleData,
}

/// Data of an input.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum SampleData {
    /// Zeros; empty strings for `BYTES`.
    Zero {},
    /// Random numbers; empty strings for `BYTES`.
    Random {},
    /// A file in the form of the binary tensor extension.
    File {
        /// Its absolute path.
        path: String,
    },
}
