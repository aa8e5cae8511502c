//! Why a body ends before its end.

use std::fmt;

/// The model failed after the response had begun, in a form that has no place for an error: the connection, or the
/// stream of HTTP/2, ends without the body's end, and the client sees that something is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenOff;

impl fmt::Display for BrokenOff {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the model failed after the response had begun")
    }
}

impl std::error::Error for BrokenOff {}
