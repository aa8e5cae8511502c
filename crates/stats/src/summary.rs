//! Quantiles of the last minute, as Triton's summaries show them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

/// Slices of time that a summary looks back on; the oldest is forgotten as a new one begins.
const SLICES: usize = 5;

/// How long a slice lasts. Source: five slices are the minute that Triton's metrics library looks back.
const SLICE: Duration = Duration::from_secs(12);

/// Digits of a value that are kept: a quantile is off by one per cent at most.
const DIGITS: u8 = 2;

/// Longest value that is distinguished from longer ones: a day.
const MAX_MICROS: u64 = 86_400_000_000;

/// Quantiles over the last minute, count and sum over all time. Values are microseconds.
#[derive(Debug)]
pub struct Summary {
    // The newest last. None where nothing was seen in it, which costs no memory.
    slices: VecDeque<Option<Histogram<u32>>>,
    began: Instant,
    count: u64,
    sum: u64,
}

/// What a summary shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The value of each quantile that was asked for; NaN where the last minute was quiet.
    pub quantiles: Vec<f64>,
    /// Values of all time added up.
    pub sum: u64,
    /// How many.
    pub count: u64,
}

impl Summary {
    /// An empty summary.
    pub fn new(now: Instant) -> Summary {
        Summary { slices: VecDeque::from([None]), began: now, count: 0, sum: 0 }
    }

    /// Takes a value in.
    pub fn observe(&mut self, now: Instant, value: Duration) {
        let micros = u64::try_from(value.as_micros()).unwrap_or(u64::MAX);
        self.turn(now);
        self.count += 1;
        self.sum = self.sum.saturating_add(micros);
        if let Some(newest) = self.slices.back_mut() {
            // Two digits are within what the library takes.
            let slice = newest.get_or_insert_with(|| Histogram::new(DIGITS).expect("two digits"));
            // It grows as it must for a value below the bound.
            slice.record(micros.min(MAX_MICROS)).unwrap_or_default();
        }
    }

    /// What it shows now.
    pub fn show(&mut self, now: Instant, quantiles: &[f64]) -> Shown {
        self.turn(now);
        let mut slices = self.slices.iter().flatten();
        let mut merged = slices.next().cloned();
        if let Some(merged) = &mut merged {
            // Both grow with their values, so that what one holds finds room in the other.
            slices.for_each(|slice| merged.add(slice).unwrap_or_default());
        }
        let value = |quantile: f64| merged.as_ref().map_or(f64::NAN, |all| all.value_at_quantile(quantile) as f64);
        Shown {
            quantiles: quantiles.iter().map(|&quantile| value(quantile)).collect(),
            sum: self.sum,
            count: self.count,
        }
    }

    /// Begins new slices until the newest is the one of this moment.
    fn turn(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.began).as_secs() / SLICE.as_secs();
        let Ok(passed @ 1..) = u32::try_from(passed) else { return };
        self.began += SLICE * passed;
        for _ in 0..(passed as usize).min(SLICES) {
            self.slices.push_back(None);
        }
        while self.slices.len() > SLICES {
            self.slices.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(value: u64) -> Duration {
        Duration::from_micros(value)
    }

    #[test]
    fn quantiles_are_those_of_what_was_seen_within_one_per_cent() {
        let now = alipes_clock::now();
        let mut summary = Summary::new(now);
        (1..=10_000).for_each(|value| summary.observe(now, micros(value)));
        let Shown { quantiles, sum, count } = summary.show(now, &[0.5, 0.9, 0.999]);
        for (found, expected) in quantiles.iter().zip([5_000.0, 9_000.0, 9_990.0]) {
            assert!((found - expected).abs() <= expected / 100.0, "{found} for {expected}");
        }
        assert_eq!((sum, count), (50_005_000, 10_000));
    }

    #[test]
    fn what_is_older_than_a_minute_is_forgotten_by_quantiles_alone() {
        let began = alipes_clock::now();
        let mut summary = Summary::new(began);
        summary.observe(began, micros(1_000_000));
        summary.observe(began + SLICE * 4, micros(10));
        assert!(summary.show(began + SLICE * 4, &[1.0]).quantiles[0] > 900_000.0);
        let later = summary.show(began + SLICE * 5, &[1.0]);
        assert_eq!((later.quantiles[0], later.sum, later.count), (10.0, 1_000_010, 2));
        let much_later = summary.show(began + SLICE * 1_000_000, &[0.5]);
        assert!(much_later.quantiles[0].is_nan());
        assert_eq!(much_later.count, 2);
    }
}
