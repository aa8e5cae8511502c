//! What a version's statistics said at one moment, and what happened between two.

use std::time::{Duration, Instant};

use alipes_scheduler::tuning::{LATENCY_BUCKETS, Observation};
use alipes_stats::statistics::{BatchTally, FailureReason, Statistics};

/// Sums at one moment; they only grow.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) at: Instant,
    latencies: [u64; LATENCY_BUCKETS],
    refused: u64,
    rows: u64,
    executions: u64,
    /// Executions by their rows.
    by_rows: Vec<(u32, u64)>,
    computing_ns: u64,
    waiting: usize,
    /// Rows of a full batch, then and until the next reading.
    batch: u32,
}

impl Reading {
    pub(super) fn of(statistics: &Statistics, waiting: usize, batch: u32, now: Instant) -> Reading {
        let snapshot = statistics.snapshot();
        let mut latencies = [0; LATENCY_BUCKETS];
        let counts = statistics.latencies().into_iter().flatten();
        latencies.iter_mut().zip(counts).for_each(|(latency, count)| *latency = count);
        let count = |(rows, tally): (&u32, &BatchTally)| (*rows, tally.compute_infer.count);
        Reading {
            at: now,
            latencies,
            refused: snapshot.failures[FailureReason::Rejected as usize],
            rows: snapshot.inference_count,
            executions: snapshot.execution_count,
            by_rows: snapshot.batches.iter().map(count).collect(),
            computing_ns: snapshot.batches.values().map(computing_ns).sum(),
            waiting,
            batch,
        }
    }

    /// What happened since an earlier reading; none where no time has passed.
    pub(super) fn since(&self, earlier: &Reading) -> Option<Observation> {
        let span = self.at.checked_duration_since(earlier.at).filter(|span| !span.is_zero())?;
        let mut latencies = self.latencies;
        latencies.iter_mut().zip(earlier.latencies).for_each(|(count, before)| *count -= before.min(*count));
        Some(Observation {
            span,
            latencies,
            refused: self.refused - earlier.refused,
            rows: self.rows - earlier.rows,
            executions: self.executions - earlier.executions,
            full: self.full(earlier.batch).saturating_sub(earlier.full(earlier.batch)),
            computing: Duration::from_nanos(self.computing_ns - earlier.computing_ns),
            waiting: self.waiting,
        })
    }

    fn full(&self, batch: u32) -> u64 {
        self.by_rows.iter().filter(|(rows, _)| *rows >= batch).map(|(_, count)| count).sum()
    }
}

fn computing_ns(tally: &BatchTally) -> u64 {
    tally.compute_input.ns + tally.compute_infer.ns + tally.compute_output.ns
}
