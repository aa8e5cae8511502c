//! What events that answer events say of themselves.

use serde::Deserialize;

/// How a request that is a CloudEvent is answered. Source: the variables `CE_MERGE`, `CE_TYPE` and `CE_SOURCE` of
/// KServe's Python server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloudEventSpec {
    /// The answer repeats the attributes of the request.
    pub merge: bool,
    /// The type of the answer; KServe's where there is none.
    pub kind: Option<String>,
    /// Its source; one with the model's name where there is none.
    pub source: Option<String>,
}
