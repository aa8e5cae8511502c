//! How often spans of time, or sizes, fall into which bucket.

use std::time::Duration;

/// Number of upper edges of [`SPAN_EDGES_NS`].
const EDGES: usize = 16;

/// Upper edges of the buckets of spans, in nanoseconds: two and a half steps a decade from 100 µs to 10 s. Quick models
/// answer within the first, and nobody waits beyond the last.
const SPAN_EDGES_NS: [u64; EDGES] = {
    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;
    const S: u64 = 1_000_000_000;
    [
        100 * US,
        250 * US,
        500 * US,
        MS,
        2_500 * US,
        5 * MS,
        10 * MS,
        25 * MS,
        50 * MS,
        100 * MS,
        250 * MS,
        500 * MS,
        S,
        2_500 * MS,
        5 * S,
        10 * S,
    ]
};

/// A histogram of spans of time with fixed edges; cheap enough to be kept of every request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    // Spans up to each edge, and beyond the last.
    counts: [u64; EDGES + 1],
    /// How many.
    pub count: u64,
    /// Altogether, in nanoseconds.
    pub total_ns: u64,
}

impl Spans {
    /// Counts a span.
    pub fn add(&mut self, span: Duration) {
        let ns = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        self.counts[SPAN_EDGES_NS.partition_point(|&edge| edge < ns)] += 1;
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
    }

    /// Counts what another one has counted.
    pub fn merge(&mut self, other: &Spans) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
    }

    /// As Prometheus shows it, in seconds.
    pub fn exposed(&self) -> Exposed {
        let edges = SPAN_EDGES_NS.iter().map(|&edge| edge as f64 / 1e9);
        Exposed::new(edges, &self.counts, self.total_ns as f64 / 1e9)
    }
}

/// A histogram with edges that a model may choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    edges: Vec<f64>,
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    /// An empty histogram with ascending upper edges.
    pub fn new(edges: Vec<f64>) -> Histogram {
        Histogram { counts: vec![0; edges.len() + 1], edges, sum: 0.0 }
    }

    /// Counts a size.
    pub fn add(&mut self, size: f64) {
        self.add_many(size, 1);
    }

    /// Counts a size so many times.
    pub fn add_many(&mut self, size: f64, times: u64) {
        self.counts[self.edges.partition_point(|&edge| edge < size)] += times;
        self.sum += size * times as f64;
    }

    /// As Prometheus shows it.
    pub fn exposed(&self) -> Exposed {
        Exposed::new(self.edges.iter().copied(), &self.counts, self.sum)
    }
}

/// A histogram in the form of Prometheus: each bucket holds what the lower ones hold as well.
#[derive(Clone, Debug, PartialEq)]
pub struct Exposed {
    /// Upper edge and count of each bucket but the last.
    pub buckets: Vec<(f64, u64)>,
    /// Everything added up.
    pub sum: f64,
    /// How many, which is what the last bucket holds.
    pub count: u64,
}

impl Exposed {
    fn new(edges: impl Iterator<Item = f64>, counts: &[u64], sum: f64) -> Exposed {
        let mut so_far = 0;
        let mut cumulated = counts.iter().map(|count| {
            so_far += count;
            so_far
        });
        let buckets = edges.zip(&mut cumulated).collect();
        let count = cumulated.next().unwrap_or_default();
        Exposed { buckets, sum, count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_falls_into_the_first_bucket_whose_edge_it_does_not_exceed() {
        let mut spans = Spans::default();
        [0, 100, 101, 1_000, 60_000_000].map(Duration::from_micros).iter().for_each(|&span| spans.add(span));
        let exposed = spans.exposed();
        assert_eq!(exposed.buckets[..4], [(0.0001, 2), (0.00025, 3), (0.0005, 3), (0.001, 4)]);
        assert_eq!((exposed.buckets[EDGES - 1], exposed.count), ((10.0, 4), 5));
        assert!((exposed.sum - 60.001_201).abs() < 1e-9);
        assert!(SPAN_EDGES_NS.is_sorted());
    }

    #[test]
    fn what_two_have_counted_is_counted_once_each() {
        let mut one = Spans::default();
        one.add(Duration::from_millis(3));
        let mut both = one;
        both.merge(&one);
        assert_eq!((both.count, both.total_ns, both.exposed().buckets[5].1), (2, 6_000_000, 2));
    }

    #[test]
    fn a_histogram_without_edges_counts_all_the_same() {
        let mut histogram = Histogram::new(Vec::new());
        histogram.add(3.0);
        histogram.add_many(2.0, 2);
        assert_eq!(histogram.exposed(), Exposed { buckets: Vec::new(), sum: 7.0, count: 3 });
    }
}
