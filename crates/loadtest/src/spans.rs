//! Times between two moments, and their histograms.

use std::time::Instant;

use hdrhistogram::Histogram;

/// Significant digits of a histogram: its values are right within 0.1 %.
const DIGITS: u8 = 3;

/// Longest time that a histogram tells from longer ones, in nanoseconds: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// An empty histogram; all have the same bounds.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(LONGEST_NS, DIGITS).expect("the bounds are constants that fit")
}

/// Nanoseconds from one moment to another; 0 where it lies before.
pub fn span(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_nanos()).unwrap_or(u64::MAX)
}
