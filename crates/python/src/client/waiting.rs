//! Waits that Ctrl-C ends.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// Longest time in which nobody looks for signals.
const SLICE: Duration = Duration::from_millis(100);

/// The end of a wait.
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// After so many seconds; `None` is never.
    pub fn after(seconds: Option<f64>) -> Deadline {
        let span = seconds.map(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX));
        Deadline(span.and_then(|span| alipes_clock::now().checked_add(span)))
    }

    /// How long to wait before the next look.
    pub fn slice(&self) -> Duration {
        self.0.map_or(SLICE, |end| end.saturating_duration_since(alipes_clock::now()).min(SLICE))
    }

    /// Whether the time is up.
    pub fn is_over(&self) -> bool {
        self.0.is_some_and(|end| end <= alipes_clock::now())
    }
}

/// Calls `look` without the interpreter, for a short while each time, until it has something or the time is up.
pub fn wait<T: Send>(
    py: Python<'_>,
    deadline: &Deadline,
    mut look: impl FnMut(Duration) -> Option<T> + Send,
) -> PyResult<Option<T>> {
    loop {
        let slice = deadline.slice();
        if let Some(found) = py.detach(|| look(slice)) {
            return Ok(Some(found));
        }
        if deadline.is_over() {
            return Ok(None);
        }
        py.check_signals()?;
    }
}
