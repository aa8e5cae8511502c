//! What is logged of requests and responses.

use serde::Deserialize;

/// Which requests and responses are kept for the payload log, and how much of them at a time.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PayloadLogSpec {
    /// Requests are logged.
    pub requests: bool,
    /// Responses are logged.
    pub responses: bool,
    /// The share of requests that are logged, with their responses: from 0 to 1.
    pub sample: f64,
    /// Headers, in lower case, that are logged with a request.
    pub headers: Vec<String>,
    /// Names of headers, parameters and tensors whose value is not logged.
    pub redacted: Vec<String>,
    /// Most bytes that wait; what would be more is dropped, and counted.
    pub max_bytes: u64,
}
