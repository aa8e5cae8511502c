//! Spans of time as explanations show them.

use std::time::Duration;

/// Whole microseconds.
pub(super) fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
