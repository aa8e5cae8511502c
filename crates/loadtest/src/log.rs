//! Requests one by one, with their moments.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::spans::span;

/// Moments of responses that are kept for each request that is, on average: those of streams with more fill the log
/// before its requests do.
const RESPONSES_PER_REQUEST: usize = 8;

/// Tells what time it was at a moment: the calendar's time when it was made, and the steady clock from there.
#[derive(Clone, Copy, Debug)]
pub struct Calendar {
    origin: Instant,
    origin_ns: u64,
}

impl Calendar {
    /// The system's, as of now.
    pub fn now() -> Calendar {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Calendar { origin: alipes_clock::now(), origin_ns: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX) }
    }

    /// Nanoseconds from the beginning of 1970 to this moment.
    pub fn ns(&self, moment: Instant) -> u64 {
        if moment < self.origin {
            return self.origin_ns.saturating_sub(span(moment, self.origin));
        }
        self.origin_ns.saturating_add(span(self.origin, moment))
    }
}

/// A request, with its moments in nanoseconds from the beginning of 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which of the source's requests it was.
    pub request: usize,
    /// When it was due.
    pub due_ns: u64,
    /// When its first byte was sent.
    pub begun_ns: u64,
    /// When it was over: its last response was there, or it had failed.
    pub end_ns: u64,
    /// How many moments of responses it has in the log.
    pub responses: usize,
    /// Whether it failed.
    pub failed: bool,
}

/// Requests in the order in which they ended.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The requests.
    pub entries: Vec<Entry>,
    /// The moments of their responses, request by request.
    pub responses_ns: Vec<u64>,
    /// Requests for which there was no room.
    pub dropped: u64,
    most: usize,
}

impl Log {
    /// At most so many requests, and [`RESPONSES_PER_REQUEST`] times as many responses.
    pub fn new(most: usize) -> Log {
        Log { most, ..Log::default() }
    }

    /// Whether anything is kept.
    pub fn is_on(&self) -> bool {
        self.most > 0
    }

    /// A request is over.
    pub fn ended(&mut self, entry: Entry, responses_ns: impl ExactSizeIterator<Item = u64>) {
        let room = self.most * RESPONSES_PER_REQUEST - self.responses_ns.len();
        if self.entries.len() == self.most || room < responses_ns.len() {
            self.dropped += 1;
            return;
        }
        self.entries.push(Entry { responses: responses_ns.len(), ..entry });
        self.responses_ns.extend(responses_ns);
    }

    /// Adds those of another thread.
    pub fn add(&mut self, other: Log) {
        self.entries.extend(other.entries);
        self.responses_ns.extend(other.responses_ns);
        self.dropped += other.dropped;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const ENTRY: Entry = Entry { request: 1, due_ns: 2, begun_ns: 3, end_ns: 4, responses: 0, failed: false };

    #[test]
    fn a_log_has_a_limit_for_requests_and_for_responses() {
        let mut log = Log::new(2);
        for responses in [1, 16, 15, 0] {
            log.ended(ENTRY, vec![7; responses].into_iter());
        }
        assert_eq!(log.entries.iter().map(|entry| entry.responses).collect::<Vec<_>>(), [1, 15]);
        assert_eq!((log.responses_ns.len(), log.dropped), (16, 2));
        let mut other = Log::new(1);
        other.ended(ENTRY, [9].into_iter());
        log.add(other);
        assert_eq!((log.entries.len(), log.responses_ns[16]), (3, 9));
    }

    #[test]
    fn moments_become_the_time_of_the_day() {
        let calendar = Calendar::now();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let moment = alipes_clock::now();
        assert!(calendar.ns(moment).abs_diff(now) < Duration::from_secs(60).as_nanos() as u64);
        assert_eq!(calendar.ns(moment + Duration::from_secs(1)) - calendar.ns(moment), 1_000_000_000);
    }
}
