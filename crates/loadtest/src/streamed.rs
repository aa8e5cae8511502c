//! What requests on streams showed, each of which may have any number of responses.

use std::time::Instant;

use hdrhistogram::Histogram;

use crate::spans::{histogram, span};

/// What requests on streams showed; all spans are nanoseconds.
#[derive(Clone, Debug)]
pub struct Streamed {
    /// From the moment a request was due until its first response was there.
    pub firsts: Histogram<u64>,
    /// Between the responses of a request.
    pub gaps: Histogram<u64>,
    /// Responses of good requests; an empty one that only says that it is the last is none.
    pub responses: u64,
}

impl Default for Streamed {
    fn default() -> Streamed {
        Streamed { firsts: histogram(), gaps: histogram(), responses: 0 }
    }
}

impl Streamed {
    /// A request was answered with `count` responses, the first of them at these moments.
    pub fn add_request(&mut self, due: Instant, moments: &[Instant], count: u64) {
        if let Some(first) = moments.first() {
            self.firsts.saturating_record(span(due, *first));
        }
        for pair in moments.windows(2) {
            self.gaps.saturating_record(span(pair[0], pair[1]));
        }
        self.responses += count;
    }

    /// Adds what was measured beside it.
    pub fn add(&mut self, other: &Streamed) {
        self.firsts.add(&other.firsts).expect("all histograms have the same bounds");
        self.gaps.add(&other.gaps).expect("all histograms have the same bounds");
        self.responses += other.responses;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn first_responses_and_gaps_are_apart() {
        let due = alipes_clock::now();
        let after = |ms| due + Duration::from_millis(ms);
        let mut streamed = Streamed::default();
        streamed.add_request(due, &[after(5), after(15), after(45)], 3);
        streamed.add_request(due, &[], 0);
        let mut other = Streamed::default();
        other.add_request(due, &[after(7)], 1);
        streamed.add(&other);
        let near = |found: u64, ms: u64| assert!(found.abs_diff(ms * 1_000_000) <= ms * 1_000, "{found}: not {ms} ms");
        near(streamed.firsts.min(), 5);
        near(streamed.firsts.max(), 7);
        near(streamed.gaps.min(), 10);
        near(streamed.gaps.max(), 30);
        assert_eq!((streamed.firsts.len(), streamed.gaps.len(), streamed.responses), (2, 2, 4));
    }
}
