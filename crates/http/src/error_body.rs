//! The JSON document of an error.

use bytes::Bytes;
use serde::Serialize;

#[derive(Serialize)]
struct ErrorBody<'a> {
    error: &'a str,
}

/// The JSON document of an error.
pub fn error_body(message: &str) -> Bytes {
    serde_json::to_vec(&ErrorBody { error: message }).unwrap_or_default().into()
}
