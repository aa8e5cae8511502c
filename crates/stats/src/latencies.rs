//! How many answers came within which of some times; counted without a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts of latencies between edges that somebody has asked for.
#[derive(Debug)]
pub struct Latencies {
    edges: Vec<Duration>,
    // One for each edge, and one for what lies beyond the last. Nobody reads them together with anything else, so each
    // is an addition of its own.
    counts: Vec<AtomicU64>,
}

impl Latencies {
    /// Counts with ascending upper edges.
    pub fn new(edges: Vec<Duration>) -> Latencies {
        let counts = (0..=edges.len()).map(|_| AtomicU64::default()).collect();
        Latencies { edges, counts }
    }

    /// Counts an answer that took so long.
    pub fn add(&self, spent: Duration) {
        let bucket = self.edges.partition_point(|&edge| edge < spent);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
    }

    /// The counts so far: up to each edge, and beyond the last.
    pub fn counts(&self) -> impl Iterator<Item = u64> {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_belongs_to_what_is_below_it() {
        let latencies = Latencies::new([2, 4].map(Duration::from_millis).to_vec());
        [0, 2, 3, 4, 5, 900].map(Duration::from_millis).into_iter().for_each(|spent| latencies.add(spent));
        assert_eq!(latencies.counts().collect::<Vec<_>>(), [2, 2, 2]);
    }
}
