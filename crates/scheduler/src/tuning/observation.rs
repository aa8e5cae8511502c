//! What one period of a model's traffic showed.

use std::time::Duration;

use super::setting::Objective;

/// Buckets of latencies for each objective.
const STEPS: u32 = 16;

/// Number of buckets of latencies: sixteenths of the objective up to twice the objective, and everything beyond.
pub const LATENCY_BUCKETS: usize = 2 * STEPS as usize + 1;

/// What one period showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// How long the period was.
    pub span: Duration,
    /// Answered requests by their time from arrival to answer; see [`Objective::latency_edges`].
    pub latencies: [u64; LATENCY_BUCKETS],
    /// Requests that the queue refused, or that waited too long.
    pub refused: u64,
    /// Rows that were computed.
    pub rows: u64,
    /// Executions.
    pub executions: u64,
    /// Executions whose batch had as many rows as it waits for, or more.
    pub full: u64,
    /// Time that instances computed, added up.
    pub computing: Duration,
    /// Requests that waited when the period ended.
    pub waiting: usize,
}

impl Default for Observation {
    fn default() -> Self {
        Observation {
            span: Duration::ZERO,
            latencies: [0; LATENCY_BUCKETS],
            refused: 0,
            rows: 0,
            executions: 0,
            full: 0,
            computing: Duration::ZERO,
            waiting: 0,
        }
    }
}

impl Observation {
    /// Adds a later period.
    pub(super) fn add(&mut self, later: &Observation) {
        self.span += later.span;
        self.latencies.iter_mut().zip(later.latencies).for_each(|(count, more)| *count += more);
        self.refused += later.refused;
        self.rows += later.rows;
        self.executions += later.executions;
        self.full += later.full;
        self.computing += later.computing;
        self.waiting = later.waiting;
    }

    /// Requests that came to an end.
    pub(super) fn requests(&self) -> u64 {
        self.latencies.iter().sum::<u64>() + self.refused
    }

    /// Those that took longer than the objective, and those that were refused.
    pub(super) fn missed(&self) -> u64 {
        self.latencies[STEPS as usize..].iter().sum::<u64>() + self.refused
    }
}

impl Objective {
    /// Upper edges of all buckets of latencies but the last.
    pub fn latency_edges(&self) -> [Duration; LATENCY_BUCKETS - 1] {
        let mut steps = 0;
        [(); LATENCY_BUCKETS - 1].map(|()| {
            steps += 1;
            self.p99 * steps / STEPS
        })
    }

    /// What 99 of 100 answered requests stayed within, interpolated in its bucket; twice the objective stands for
    /// anything beyond.
    pub(super) fn p99_of(&self, observation: &Observation) -> Duration {
        let answered: u64 = observation.latencies.iter().sum();
        let wanted = answered as f64 * (1.0 - Objective::ALLOWED);
        let (mut below, mut steps) = (0.0, 0.0);
        for &count in &observation.latencies[..LATENCY_BUCKETS - 1] {
            let count = count as f64;
            if count > 0.0 && below + count >= wanted {
                steps += (wanted - below) / count;
                break;
            }
            below += count;
            steps += 1.0;
        }
        self.p99.mul_f64(steps / f64::from(STEPS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECTIVE: Objective = Objective { p99: Duration::from_millis(16) };

    fn latencies(counts: &[(usize, u64)]) -> Observation {
        let mut observation = Observation::default();
        counts.iter().for_each(|&(bucket, count)| observation.latencies[bucket] = count);
        observation
    }

    #[test]
    fn edges_are_sixteenths_of_the_objective_up_to_twice_of_it() {
        let edges = OBJECTIVE.latency_edges();
        assert_eq!((edges[0], edges[15], edges[31]), (ms(1), ms(16), ms(32)));
    }

    #[test]
    fn the_objective_itself_is_met_and_what_is_beyond_is_missed() {
        let mut observation = latencies(&[(15, 90), (16, 5), (32, 3)]);
        observation.refused = 2;
        assert_eq!((observation.requests(), observation.missed()), (100, 10));
    }

    #[test]
    fn the_p99_lies_where_99_of_100_are_below() {
        assert_eq!(OBJECTIVE.p99_of(&latencies(&[(0, 99), (9, 1)])), ms(1));
        assert_eq!(OBJECTIVE.p99_of(&latencies(&[(0, 98), (9, 2)])), Duration::from_micros(9500));
        assert_eq!(OBJECTIVE.p99_of(&latencies(&[(0, 50), (32, 50)])), ms(32));
        assert_eq!(OBJECTIVE.p99_of(&Observation::default()), ms(32), "nothing is known of it");
    }

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }
}
