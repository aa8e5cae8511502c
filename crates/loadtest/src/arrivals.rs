//! When requests of an open loop are due.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// A stretch of time in which the rate goes in a straight line from one value to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// How long it is; the last piece of a schedule may be endless.
    pub length: Duration,
    /// Requests per second at its beginning.
    pub from: f64,
    /// Requests per second at its end.
    pub to: f64,
}

/// How requests are spread over time.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// At the rate that pieces give: evenly, or, with a seed, as a Poisson process of this rate.
    Rate {
        /// One after the other.
        pieces: Vec<Piece>,
        /// For Poisson's process.
        seed: Option<u64>,
        /// Whether the first piece follows the last one.
        repeats: bool,
    },
    /// With these spans in front of each request, over and over.
    Intervals(Vec<Duration>),
}

impl Schedule {
    /// The moments at which requests are due, as spans since the beginning, in their order.
    pub fn moments(&self) -> Moments {
        let source = match self {
            Schedule::Rate { pieces, seed, repeats } => Arrival::Rate {
                // Pieces without a request would be gone through for ever.
                repeats: *repeats && pieces.iter().any(|piece| requests(piece) > 0.0),
                pieces: pieces.clone(),
                random: seed.map(SmallRng::seed_from_u64),
                at: 0,
                piece_begin_s: 0.0,
                inside: 0.0,
            },
            Schedule::Intervals(spans) => Arrival::Intervals { spans: spans.clone(), at: 0, moment: Duration::ZERO },
        };
        Moments { source }
    }
}

/// The moments of a schedule.
#[derive(Debug)]
pub struct Moments {
    source: Arrival,
}

#[derive(Debug)]
enum Arrival {
    Rate {
        pieces: Vec<Piece>,
        random: Option<SmallRng>,
        repeats: bool,
        /// The piece that the next moment is looked for in.
        at: usize,
        piece_begin_s: f64,
        /// Requests that the piece has brought so far.
        inside: f64,
    },
    Intervals {
        spans: Vec<Duration>,
        at: usize,
        moment: Duration,
    },
}

impl Iterator for Moments {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        match &mut self.source {
            Arrival::Intervals { spans, at, moment } => {
                *moment += *spans.get(*at)?;
                *at = (*at + 1) % spans.len();
                Some(*moment)
            }
            Arrival::Rate { pieces, random, repeats, at, piece_begin_s, inside } => {
                // A request is due when the rate has added up to one more, or to an exponential share.
                let mut share = match random {
                    None => 1.0,
                    Some(random) => -(1.0 - random.random::<f64>()).ln(),
                };
                loop {
                    let piece = pieces.get(*at)?;
                    let left = requests(piece) - *inside;
                    if share <= left {
                        *inside += share;
                        let moment = *piece_begin_s + seconds_until(piece, *inside);
                        return Duration::try_from_secs_f64(moment).ok();
                    }
                    share -= left;
                    *piece_begin_s += piece.length.as_secs_f64();
                    *inside = 0.0;
                    *at += 1;
                    if *repeats {
                        *at %= pieces.len();
                    }
                }
            }
        }
    }
}

/// Requests that a piece brings from its beginning to its end.
fn requests(piece: &Piece) -> f64 {
    (piece.from + piece.to) / 2.0 * piece.length.as_secs_f64()
}

/// Seconds from the beginning of a piece until it has brought so many requests, which it does bring.
fn seconds_until(piece: &Piece, count: f64) -> f64 {
    let slope = (piece.to - piece.from) / piece.length.as_secs_f64();
    if slope.abs() < f64::EPSILON * piece.from.max(1.0) {
        return count / piece.from;
    }
    // count = from * t + slope / 2 * t^2, in the form that loses no digits to a subtraction.
    let root = piece.from.mul_add(piece.from, 2.0 * slope * count).max(0.0).sqrt();
    2.0 * count / (piece.from + root)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(pieces: &[(f64, f64, f64)], seed: Option<u64>) -> Schedule {
        let piece = |&(length, from, to)| Piece { length: Duration::from_secs_f64(length), from, to };
        Schedule::Rate { pieces: pieces.iter().map(piece).collect(), seed, repeats: false }
    }

    fn seconds(schedule: &Schedule) -> Vec<f64> {
        schedule.moments().take(100_000).map(|moment| moment.as_secs_f64()).collect()
    }

    #[test]
    fn an_even_rate_has_even_moments_until_its_end() {
        let moments = seconds(&rate(&[(1.0, 10.0, 10.0)], None));
        assert_eq!(moments.len(), 10);
        for (number, moment) in moments.iter().enumerate() {
            assert!((moment - (number + 1) as f64 / 10.0).abs() < 1e-9, "{moments:?}");
        }
    }

    #[test]
    fn a_ramp_brings_as_many_requests_as_its_area() {
        let moments = seconds(&rate(&[(2.0, 0.0, 100.0), (1.0, 0.0, 0.0), (1.0, 50.0, 0.0)], None));
        assert_eq!(moments.len(), 125);
        assert!(moments.is_sorted());
        assert_eq!(moments.iter().filter(|moment| **moment <= 1.0).count(), 25);
        assert!(!moments.iter().any(|moment| (2.0 + 1e-9..3.0).contains(moment)));
    }

    #[test]
    fn random_arrivals_have_the_rate_and_the_spread_of_poisson() {
        let moments = seconds(&rate(&[(100.0, 200.0, 200.0)], Some(7)));
        let spans: Vec<f64> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = spans.iter().sum::<f64>() / spans.len() as f64;
        let variance = spans.iter().map(|span| (span - mean).powi(2)).sum::<f64>() / spans.len() as f64;
        assert!((mean * 200.0 - 1.0).abs() < 0.03, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.05, "{variance}");
        assert_eq!(moments, seconds(&rate(&[(100.0, 200.0, 200.0)], Some(7))));
        assert_ne!(moments, seconds(&rate(&[(100.0, 200.0, 200.0)], Some(8))));
    }

    fn repeated(schedule: Schedule) -> Schedule {
        let Schedule::Rate { pieces, seed, .. } = schedule else { panic!("it has no pieces") };
        Schedule::Rate { pieces, seed, repeats: true }
    }

    #[test]
    fn bursts_come_again() {
        let bursts = repeated(rate(&[(1.0, 0.0, 0.0), (0.5, 40.0, 40.0)], None));
        let moments: Vec<f64> = bursts.moments().take(60).map(|moment| moment.as_secs_f64()).collect();
        for (burst, moments) in moments.chunks(20).enumerate() {
            let begin = 1.5 * burst as f64 + 1.0;
            assert!(moments.iter().all(|moment| (begin..begin + 0.5 + 1e-9).contains(moment)), "{moments:?}");
        }
        assert_eq!(repeated(rate(&[(1.0, 0.0, 0.0)], None)).moments().next(), None);
    }

    #[test]
    fn intervals_are_repeated() {
        let spans = [10, 20].map(Duration::from_millis).to_vec();
        let moments: Vec<_> = Schedule::Intervals(spans).moments().take(5).map(|moment| moment.as_millis()).collect();
        assert_eq!(moments, [10, 30, 40, 60, 70]);
        assert_eq!(Schedule::Intervals(Vec::new()).moments().next(), None);
    }
}
