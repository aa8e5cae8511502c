//! The outcome of one request whose responses arrive one by one: counted once, with its last response.

use std::sync::Arc;
use std::time::{Duration, Instant};

use alipes_protocol::{InferError, Tensor};
use alipes_stats::outcomes::AnswerTimes;
use compact_str::CompactString;

use super::{TrafficSplit, is_of_caller, samples_of};

/// A request that has not ended. Dropped before its last response, it counts as neither answered nor failed: its caller
/// has left.
///
/// It counts for the weights under which it began, also where they change meanwhile.
#[derive(Debug)]
pub struct OpenOutcome {
    split: Arc<TrafficSplit>,
    version: i64,
    is_batched: bool,
    arrived: Instant,
    first: Option<FirstResponse>,
    responses: u32,
    /// When the newest response came, since the request.
    newest: Duration,
    is_counted: bool,
}

/// What is compared of the first response.
#[derive(Debug, Default)]
struct FirstResponse {
    latency: Duration,
    samples: Vec<(CompactString, f64)>,
}

impl OpenOutcome {
    pub(super) fn new(split: Arc<TrafficSplit>, version: i64, is_batched: bool, arrived: Instant) -> OpenOutcome {
        OpenOutcome {
            split,
            version,
            is_batched,
            arrived,
            first: None,
            responses: 0,
            newest: Duration::ZERO,
            is_counted: false,
        }
    }

    /// Takes note of a response, or of an end without one. The first error decides what the request counts as: a
    /// failure, or nothing where it is the caller's.
    pub fn take(&mut self, now: Instant, answer: Option<Result<&[Tensor], &InferError>>, last: bool) {
        if self.is_counted {
            return;
        }
        let spent = now.saturating_duration_since(self.arrived);
        match answer {
            Some(Ok(outputs)) => self.respond(spent, outputs),
            Some(Err(error)) => {
                self.is_counted = true;
                if !is_of_caller(error.code) {
                    self.split.outcomes[&self.version].failed();
                }
            }
            None => {}
        }
        if last && !self.is_counted {
            self.end(spent);
        }
    }

    fn respond(&mut self, spent: Duration, outputs: &[Tensor]) {
        (self.responses, self.newest) = (self.responses.saturating_add(1), spent);
        if self.first.is_none() {
            let samples = samples_of(outputs, self.is_batched).map(|(name, sample)| (name.into(), sample));
            self.first = Some(FirstResponse { latency: spent, samples: samples.collect() });
        }
    }

    fn end(&mut self, spent: Duration) {
        self.is_counted = true;
        let FirstResponse { latency, samples } =
            self.first.take().unwrap_or_else(|| FirstResponse { latency: spent, samples: Vec::new() });
        let gaps = self.responses.saturating_sub(1);
        let interval = self.newest.saturating_sub(latency).checked_div(gaps);
        let samples = samples.iter().map(|(name, sample)| (name.as_str(), *sample));
        self.split.outcomes[&self.version].answered(AnswerTimes { latency, interval }, samples);
    }
}

#[cfg(test)]
mod tests {
    use alipes_protocol::{Code, Datatype};
    use alipes_stats::outcomes::OutcomesDocument;
    use bytes::Bytes;

    use super::*;

    fn output(value: f32) -> Vec<Tensor> {
        let data = Bytes::copy_from_slice(&value.to_ne_bytes());
        vec![Tensor { name: "Y".into(), datatype: Datatype::Fp32, shape: [1].into_iter().collect(), data }]
    }

    /// A response at so many microseconds, or an end without one, and whether it is the last.
    type Timed = (u64, Option<Result<f32, Code>>, bool);

    /// What a version counts once a request had these responses.
    fn outcome(responses: &[Timed]) -> OutcomesDocument {
        let split = Arc::new(TrafficSplit::new([(1, 1)].into(), None, None).unwrap());
        let arrived = alipes_clock::now();
        let mut outcome = split.open(1, false, arrived).unwrap();
        for (micros, answer, last) in responses {
            let answer = answer.map(|answer| answer.map(output).map_err(|code| InferError::new(code, "no")));
            let answer = answer.as_ref().map(|answer| answer.as_deref());
            outcome.take(arrived + Duration::from_micros(*micros), answer, *last);
        }
        drop(outcome);
        split.outcomes().remove(&1).unwrap()
    }

    #[test]
    fn a_request_of_many_responses_counts_once_with_its_first() {
        let one = outcome(&[(30, Some(Ok(7.0)), true)]);
        let many = outcome(&[(30, Some(Ok(7.0)), false), (50, Some(Ok(8.0)), false), (70, Some(Ok(9.0)), false)]);
        assert_eq!(many, OutcomesDocument::default());
        let many = outcome(&[
            (30, Some(Ok(7.0)), false),
            (50, Some(Ok(8.0)), false),
            (70, Some(Ok(9.0)), false),
            (99, None, true),
        ]);
        assert_eq!((one.answered, one.failed, &one.latency_us), (1, 0, &vec![(30, 1)]));
        assert!(one.response_interval_us.is_empty());
        // From 30 to 70 in two steps: the end itself is no response.
        assert_eq!(many.response_interval_us, [(20, 1)]);
        assert_eq!(OutcomesDocument { response_interval_us: Vec::new(), ..many }, one);
    }

    #[test]
    fn a_request_without_responses_is_answered_at_its_end() {
        let none = outcome(&[(40, None, true)]);
        assert_eq!((none.answered, none.latency_us, none.samples.len()), (1, vec![(40, 1)], 0));
    }

    #[test]
    fn an_error_of_the_model_fails_a_request_once() {
        let failed = OutcomesDocument { failed: 1, ..OutcomesDocument::default() };
        let (good, bad) = (Some(Ok(7.0)), Some(Err(Code::Internal)));
        assert_eq!(outcome(&[(1, bad, true)]), failed);
        assert_eq!(outcome(&[(1, good, false), (2, bad, false), (3, bad, false), (4, None, true)]), failed);
        assert_eq!(outcome(&[(1, bad, false), (2, good, true)]), failed);
    }

    #[test]
    fn a_caller_that_leaves_or_errs_counts_as_neither() {
        let nothing = OutcomesDocument::default();
        let good = Some(Ok(7.0));
        assert_eq!(outcome(&[(1, good, false), (2, good, false)]), nothing);
        for code in [Code::Cancelled, Code::InvalidArgument] {
            assert_eq!(outcome(&[(1, good, false), (2, Some(Err(code)), true)]), nothing);
        }
    }

    #[test]
    fn versions_outside_the_split_are_not_counted() {
        let split = Arc::new(TrafficSplit::new([(1, 1), (2, 0)].into(), None, None).unwrap());
        let is_counted = |version| split.open(version, true, alipes_clock::now()).is_some();
        assert_eq!([1, 2, 3].map(is_counted), [true, true, false]);
    }
}
