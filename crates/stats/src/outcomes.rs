//! What became of the requests of one version since some moment: how many, how long they took, and what was answered.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use hdrhistogram::Histogram;
use parking_lot::Mutex;
use serde::Serialize;

use crate::comparison::ComparisonDocument;

/// Digits of a latency that are kept: it is off by one per cent at most.
const DIGITS: u8 = 2;

/// Longest latency that is distinguished from longer ones: a day, in microseconds.
const MAX_MICROS: u64 = 86_400_000_000;

/// Outputs of which samples are kept, the first by name.
const MAX_OUTPUTS: usize = 16;

/// Samples that are kept of each output, the newest.
const MAX_SAMPLES: usize = 4_096;

/// The outcomes of a version's requests; counted under one short mutex.
#[derive(Debug, Default)]
pub struct Outcomes {
    counted: Mutex<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    answered: u64,
    failed: u64,
    latency: Times,
    interval: Times,
    samples: BTreeMap<String, VecDeque<f64>>,
}

/// The outcomes so far, as clients read them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OutcomesDocument {
    /// Requests that were answered.
    pub answered: u64,
    /// Requests that failed by no fault of their callers.
    pub failed: u64,
    /// How many answers began after about so many microseconds: highest time and count, ascending.
    pub latency_us: Vec<(u64, u64)>,
    /// The same of the mean time between two responses, for answers of several; empty where there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub response_interval_us: Vec<(u64, u64)>,
    /// One number of each of the newest answers, by output.
    pub samples: BTreeMap<String, Vec<f64>>,
    /// How the answers compare with those that callers got, where the version is a shadow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<ComparisonDocument>,
}

/// How long an answer took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AnswerTimes {
    /// From the request to the first response.
    pub latency: Duration,
    /// The mean time between two responses; none where there was one.
    pub interval: Option<Duration>,
}

impl Outcomes {
    /// Counts an answer, and keeps one number of each of its outputs.
    pub fn answered<'a>(&self, times: AnswerTimes, outputs: impl Iterator<Item = (&'a str, f64)>) {
        let mut counted = self.counted.lock();
        counted.answered += 1;
        counted.latency.record(times.latency);
        if let Some(interval) = times.interval {
            counted.interval.record(interval);
        }
        for (output, sample) in outputs {
            counted.sample(output, sample);
        }
    }

    /// Counts a failure.
    pub fn failed(&self) {
        self.counted.lock().failed += 1;
    }

    /// The outcomes so far.
    pub fn document(&self) -> OutcomesDocument {
        let counted = self.counted.lock();
        OutcomesDocument {
            answered: counted.answered,
            failed: counted.failed,
            latency_us: counted.latency.microseconds(),
            response_interval_us: counted.interval.microseconds(),
            samples: counted.samples.iter().map(|(name, all)| (name.clone(), all.iter().copied().collect())).collect(),
            comparison: None,
        }
    }
}

/// How often times were about so long; nothing is allocated before the first.
#[derive(Debug, Default)]
struct Times(Option<Histogram<u32>>);

impl Times {
    fn record(&mut self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).min(MAX_MICROS);
        // Two digits are within what the library takes, and it grows as it must for a value below the bound.
        let counts = self.0.get_or_insert_with(|| Histogram::new(DIGITS).expect("two digits"));
        counts.record(micros).unwrap_or_default();
    }

    /// The highest of each class of times, and how often it was seen, ascending.
    fn microseconds(&self) -> Vec<(u64, u64)> {
        let recorded = |counts: &Histogram<u32>| {
            let values = counts.iter_recorded();
            let class = values
                .map(|value| (counts.highest_equivalent(value.value_iterated_to()), value.count_at_value().into()));
            class.collect()
        };
        self.0.as_ref().map(recorded).unwrap_or_default()
    }
}

impl Counted {
    fn sample(&mut self, output: &str, sample: f64) {
        let is_new = !self.samples.contains_key(output);
        if is_new {
            if self.samples.len() == MAX_OUTPUTS {
                return;
            }
            self.samples.insert(output.to_owned(), VecDeque::new());
        }
        let Some(samples) = self.samples.get_mut(output) else { return };
        if samples.len() == MAX_SAMPLES {
            samples.pop_front();
        }
        samples.push_back(sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(latency: Duration) -> AnswerTimes {
        AnswerTimes { latency, interval: None }
    }

    #[test]
    fn outcomes_are_counted_beside_the_newest_samples() {
        let outcomes = Outcomes::default();
        assert_eq!(outcomes.document(), OutcomesDocument::default());
        for number in 0..=MAX_SAMPLES {
            outcomes.answered(after(Duration::from_micros(50)), [("Y", number as f64)].into_iter());
        }
        outcomes.answered(after(Duration::from_secs(10 * 24 * 3600)), [].into_iter());
        outcomes.failed();
        let document = outcomes.document();
        assert_eq!((document.answered, document.failed), (MAX_SAMPLES as u64 + 2, 1));
        assert_eq!(document.latency_us[0], (50, MAX_SAMPLES as u64 + 1));
        let (longest, count) = document.latency_us[1];
        assert!(longest.abs_diff(MAX_MICROS) <= MAX_MICROS / 100 && count == 1, "{longest}");
        assert_eq!(document.samples["Y"].len(), MAX_SAMPLES);
        assert_eq!(document.samples["Y"].first(), Some(&1.0));
    }

    #[test]
    fn intervals_are_recorded_of_answers_that_have_one() {
        let outcomes = Outcomes::default();
        outcomes.answered(after(Duration::from_micros(90)), [].into_iter());
        assert!(outcomes.document().response_interval_us.is_empty());
        let interval = Some(Duration::from_micros(20));
        outcomes.answered(AnswerTimes { interval, ..after(Duration::from_micros(90)) }, [].into_iter());
        let document = outcomes.document();
        assert_eq!((document.latency_us, document.response_interval_us), (vec![(90, 2)], vec![(20, 1)]));
    }

    #[test]
    fn so_many_outputs_are_sampled_and_no_more() {
        let outcomes = Outcomes::default();
        let names: Vec<String> = (0..MAX_OUTPUTS + 3).map(|number| format!("output {number:02}")).collect();
        for _ in 0..2 {
            outcomes.answered(AnswerTimes::default(), names.iter().map(|name| (name.as_str(), 1.0)));
        }
        let samples = outcomes.document().samples;
        assert_eq!(samples.len(), MAX_OUTPUTS);
        assert!(samples.values().all(|all| all.len() == 2));
    }
}
