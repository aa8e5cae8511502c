//! What was measured.

use std::collections::BTreeMap;
use std::time::Instant;

use alipes_client::ClientError;
use hdrhistogram::Histogram;

use crate::log::Log;
use crate::samples::Samples;
use crate::spans::{histogram, span};
use crate::streamed::Streamed;

/// Most kinds of failures that are told apart; further ones are counted as others.
const MAX_FAILURES: usize = 32;

/// Longest text of a failure in bytes; a longer one, which a server may well send, is cut.
const MAX_TEXT_BYTES: usize = 1024;

/// The kind of the failures beyond those that are told apart.
const OTHERS: &str = "other failures";

/// The moments of a request that was answered.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// When it was due: in a closed loop, when its caller was free.
    pub due: Instant,
    /// When somebody was told to send it.
    pub dispatched: Instant,
    /// When its first byte was sent.
    pub begun: Instant,
    /// When its last byte was sent.
    pub sent: Instant,
    /// When its answer's first byte came.
    pub first: Instant,
    /// When its answer was there.
    pub end: Instant,
}

/// What is kept beside sums.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keep {
    /// Most answers that each thread keeps of each source, spread evenly over those that came.
    pub samples: usize,
    /// Most requests of which each thread keeps the moments, of each source.
    pub requests: usize,
}

/// What was measured in some time; all spans are nanoseconds.
#[derive(Clone, Debug)]
pub struct Record {
    /// From the moment a request was due until its answer was there.
    pub latencies: Histogram<u64>,
    /// From the moment a request was due until this program turned to it: its own lateness.
    pub lateness: Histogram<u64>,
    /// From then until a connection was free: longer than nothing only where all were busy.
    pub queueing: Histogram<u64>,
    /// Time that sending took, in all.
    pub sending_ns: u64,
    /// Time until the first byte of answers, in all.
    pub waiting_ns: u64,
    /// Time that receiving took, in all.
    pub receiving_ns: u64,
    /// Bytes of answers, in all.
    pub received_bytes: u64,
    /// Failures, by what was wrong.
    pub failures: BTreeMap<String, u64>,
    /// Requests that were due and never sent, since too many waited.
    pub dropped: u64,
    /// Connections that were opened.
    pub connections: u64,
    /// Processor time of the threads that send.
    pub busy_ns: u64,
    /// What requests on streams showed; none without any.
    pub streamed: Option<Box<Streamed>>,
    /// Some answers.
    pub samples: Samples,
    /// Some requests, one by one.
    pub log: Log,
}

impl Default for Record {
    fn default() -> Record {
        Record::new(Keep::default())
    }
}

impl Record {
    /// Nothing was measured so far.
    pub fn new(keep: Keep) -> Record {
        Record {
            latencies: histogram(),
            lateness: histogram(),
            queueing: histogram(),
            sending_ns: 0,
            waiting_ns: 0,
            receiving_ns: 0,
            received_bytes: 0,
            failures: BTreeMap::new(),
            dropped: 0,
            connections: 0,
            busy_ns: 0,
            streamed: None,
            samples: Samples::new(keep.samples),
            log: Log::new(keep.requests),
        }
    }

    /// A request was answered.
    pub fn answered(&mut self, times: &Times, bytes: usize) {
        self.latencies.saturating_record(span(times.due, times.end));
        self.lateness.saturating_record(span(times.due, times.dispatched));
        self.queueing.saturating_record(span(times.dispatched, times.begun));
        self.sending_ns += span(times.begun, times.sent);
        self.waiting_ns += span(times.sent, times.first);
        self.receiving_ns += span(times.first, times.end);
        self.received_bytes += bytes as u64;
    }

    /// A request on a stream was answered, with responses at these moments.
    pub fn answered_on_stream(&mut self, due: Instant, responses: &[Instant], count: u64) {
        self.streamed.get_or_insert_default().add_request(due, responses, count);
    }

    /// A request failed.
    pub fn failed(&mut self, error: &ClientError) {
        self.count_failures(&error.message, 1);
    }

    /// Adds what was measured beside it.
    pub fn add(&mut self, other: Record) {
        for (own, others) in [
            (&mut self.latencies, &other.latencies),
            (&mut self.lateness, &other.lateness),
            (&mut self.queueing, &other.queueing),
        ] {
            own.add(others).expect("all histograms have the same bounds");
        }
        self.sending_ns += other.sending_ns;
        self.waiting_ns += other.waiting_ns;
        self.receiving_ns += other.receiving_ns;
        self.received_bytes += other.received_bytes;
        self.dropped += other.dropped;
        self.connections += other.connections;
        self.busy_ns += other.busy_ns;
        if let Some(streamed) = other.streamed {
            self.streamed.get_or_insert_default().add(&streamed);
        }
        self.samples.add(other.samples);
        self.log.add(other.log);
        for (text, count) in other.failures {
            self.count_failures(&text, count);
        }
    }

    /// Requests that were answered.
    pub fn answers(&self) -> u64 {
        self.latencies.len()
    }

    fn count_failures(&mut self, text: &str, count: u64) {
        let end = (0..=text.len().min(MAX_TEXT_BYTES)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        let text = &text[..end];
        if let Some(known) = self.failures.get_mut(text) {
            *known += count;
        } else {
            let kind = if self.failures.len() < MAX_FAILURES { text } else { OTHERS };
            *self.failures.entry(kind.to_owned()).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use alipes_client::Kind;

    use super::*;

    #[test]
    fn the_parts_of_a_latency_add_up_to_it() {
        let due = alipes_clock::now();
        let after = |ms| due + Duration::from_millis(ms);
        let times =
            Times { due, dispatched: after(1), begun: after(3), sent: after(6), first: after(10), end: after(15) };
        let mut record = Record::default();
        record.answered(&times, 7);
        record.answered(&Times { end: after(20), ..times }, 7);
        let near =
            |found: u64, ms: u64| assert!(found.abs_diff(ms * 1_000_000) <= ms * 1_000, "{found} is not {ms} ms");
        near(record.latencies.max(), 20);
        near(record.lateness.max(), 1);
        near(record.queueing.max(), 2);
        assert_eq!((record.sending_ns, record.waiting_ns, record.receiving_ns), (6_000_000, 8_000_000, 15_000_000));
        assert_eq!((record.answers(), record.received_bytes), (2, 14));
    }

    #[test]
    fn records_of_threads_add_up() {
        let failure = |text: &str| ClientError::new(Kind::Broken, text);
        let (mut one, mut other) = (Record::default(), Record::default());
        one.failed(&failure("a"));
        other.failed(&failure("a"));
        other.failed(&failure("b"));
        other.dropped = 3;
        one.add(other);
        assert_eq!(one.failures, BTreeMap::from([("a".to_owned(), 2), ("b".to_owned(), 1)]));
        assert_eq!(one.dropped, 3);
    }

    #[test]
    fn failures_of_many_kinds_take_bounded_room() {
        let mut record = Record::default();
        for number in 0..100 {
            record.failed(&ClientError::new(Kind::Broken, format!("failure {number}")));
        }
        assert_eq!(record.failures.len(), MAX_FAILURES + 1);
        assert_eq!(record.failures[OTHERS], 100 - MAX_FAILURES as u64);
    }

    #[test]
    fn a_failure_as_long_as_a_page_is_cut_between_characters() {
        let mut record = Record::default();
        for length in [400, 4000, 40_000] {
            record.failed(&ClientError::new(Kind::Broken, "ž€".repeat(length)));
        }
        assert_eq!(record.failures.values().copied().collect::<Vec<_>>(), [3]);
        let text = record.failures.keys().next().unwrap();
        assert!((MAX_TEXT_BYTES - 3..=MAX_TEXT_BYTES).contains(&text.len()) && "ž€".repeat(400).starts_with(text));
    }
}
