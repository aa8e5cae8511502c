//! One answer, independent of the wire it leaves by.

use std::sync::Arc;

use compact_str::CompactString;

use crate::{Parameter, Tensor};

/// A successful answer to one request.
#[derive(Clone, Debug, PartialEq)]
pub struct InferResponse {
    /// The request's id; empty where it had none.
    pub id: CompactString,
    /// Which model answered.
    pub model_name: Arc<str>,
    /// Which version of it.
    pub model_version: i64,
    /// Parameters that the model attached.
    pub parameters: Vec<(String, Parameter)>,
    /// Outputs in the order in which the backend gave them; callers find theirs by name.
    pub outputs: Vec<Tensor>,
}
