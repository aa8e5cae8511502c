//! Log lines about what any client can bring about: at most one in an interval, however often it happens.

use std::time::{Duration, Instant};

use alipes_stats::events::{Event, EventQueue};
use parking_lot::Mutex;

/// Interval between two lines about the same.
const INTERVAL: Duration = Duration::from_secs(60);

/// Level of these lines: warnings.
const WARNING: u8 = 1;

/// Lines about one thing that happens again and again.
#[derive(Default)]
pub struct Notices {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When a line was logged.
    last: Option<Instant>,
    /// How often it has happened since without a line.
    unlogged: u64,
}

impl Notices {
    /// Logs a line, unless there was one just now. It says how often there was none.
    pub fn log(&self, events: &EventQueue, text: impl FnOnce() -> String) {
        if let Some(unlogged) = self.take(alipes_clock::now()) {
            let more =
                if unlogged > 0 { format!(" (and {unlogged} times since the last such line)") } else { String::new() };
            events.push(Event::Notice { level: WARNING, text: text() + &more });
        }
    }

    /// How often it has happened without a line, where a line is due.
    fn take(&self, now: Instant) -> Option<u64> {
        let mut state = self.state.lock();
        if state.last.is_some_and(|last| now.saturating_duration_since(last) < INTERVAL) {
            state.unlogged += 1;
            return None;
        }
        let unlogged = state.unlogged;
        *state = State { last: Some(now), unlogged: 0 };
        Some(unlogged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_logged_once_in_an_interval_and_says_what_it_left_out() {
        let (notices, begin) = (Notices::default(), alipes_clock::now());
        let lines = [0, 1, 59, 60, 61, 200].map(|second| notices.take(begin + Duration::from_secs(second)));
        assert_eq!(lines, [Some(0), None, None, Some(2), None, Some(1)]);
    }
}
