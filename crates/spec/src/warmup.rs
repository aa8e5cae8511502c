//! What is executed on every instance of a model before it serves.

use alipes_protocol::Datatype;
use serde::Deserialize;

use super::datatype;

/// One sample of a model's `model_warmup`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleSpec {
    /// Its name, for messages.
    pub name: String,
    /// Requests that are executed together, each of one row.
    pub batch_size: u32,
    /// How often.
    pub count: u32,
    /// What each of these requests brings.
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
    /// Sizes of one row; all of them are given.
    pub dims: Vec<i64>,
    /// Where its bytes come from.
    pub data: SampleData,
}

/// Where the bytes of an input come from.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum SampleData {
    /// Zeros; empty strings where the elements are strings.
    Zero {},
    /// Random numbers; empty strings where the elements are strings.
    Random {},
    /// A file, as the binary tensor extension has it.
    File {
        /// Its absolute path.
        path: String,
    },
}
