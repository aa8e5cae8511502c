//! One request of a batch, with what it has behind it.

use std::time::{Duration, Instant};

use alipes_engine::OutputTensor;
use alipes_runtime::model::Pending;
use alipes_stats::statistics::{Execution, ExecutionTimes, FailureReason, Statistics};
use bytes::Bytes;
use smallvec::SmallVec;

/// A step that was run.
#[derive(Clone, Copy)]
pub struct Ran {
    /// When it began.
    pub began: Instant,
    /// When it ended.
    pub ended: Instant,
    /// What its model took.
    pub times: ExecutionTimes,
}

/// An ensemble that is a step.
pub struct InnerRecord<'a> {
    /// Where it is recorded.
    pub statistics: &'a Statistics,
    /// The numbers of its steps.
    pub steps: &'a [usize],
    /// How many steps of all take each request by itself.
    pub alone: usize,
}

/// A request, and the steps that took it by itself.
pub struct BatchedRequest {
    /// The request.
    pub request: Pending,
    /// Those steps, in their order.
    pub ran: SmallVec<[Ran; 1]>,
    /// The tensors that they made, by number.
    pub made: SmallVec<[(usize, OutputTensor); 2]>,
}

impl From<Pending> for BatchedRequest {
    fn from(request: Pending) -> BatchedRequest {
        BatchedRequest { request, ran: SmallVec::new(), made: SmallVec::new() }
    }
}

impl BatchedRequest {
    /// Whether the tensors that both have made may stand in one batch.
    pub fn goes_with(&self, other: &BatchedRequest) -> bool {
        let rest = |tensor: &OutputTensor| tensor.shape.get(1..).map(<[i64]>::to_vec);
        self.made.iter().zip(&other.made).all(|((_, one), (_, other))| rest(one) == rest(other))
    }

    /// When it came to a step that began then: with the request itself to the first step, to the others when those
    /// before had run.
    pub fn came_to(&self, step: usize, began: Instant) -> Instant {
        match step.checked_sub(1) {
            None => self.request.arrived,
            Some(before) => self.ran.get(before).map_or(began, |before| before.ended),
        }
    }

    /// What the steps took that it had by itself, and those that it had with others.
    pub fn times(&self, together: &[Ran]) -> ExecutionTimes {
        total(self.ran.iter().chain(together))
    }

    /// Records what has become of an ensemble that is a step: of its steps, the first ones of all took the request by
    /// itself, and one may have failed.
    pub fn record_inner(&self, inner: InnerRecord<'_>, together: &[Ran], failed: Option<usize>) {
        let InnerRecord { statistics, steps: numbers, alone } = inner;
        let ran = |&step: &usize| match step.checked_sub(alone) {
            None => self.ran.get(step),
            Some(step) => together.get(step),
        };
        let steps: SmallVec<[&Ran; 4]> = numbers.iter().filter_map(ran).collect();
        // It came with the request itself where nothing goes before it.
        let first = steps.iter().map(|ran| ran.began).min();
        let is_first = numbers.first().is_some_and(|&step| step == 0 || step < alone);
        let came = if is_first { self.request.arrived } else { first.unwrap_or(self.request.arrived) };
        if steps.len() == numbers.len() {
            let spent = steps.iter().map(|ran| ran.ended.duration_since(came)).max().unwrap_or_default();
            let rows = self.request.checked.rows.max(1);
            let execution = Execution { batch_size: rows, rows, requests: 1, times: total(steps.into_iter()) };
            statistics.executed(&execution, [Duration::ZERO], [spent]);
        } else if failed.is_some_and(|step| numbers.contains(&step)) {
            statistics.failed(FailureReason::Other, alipes_clock::elapsed(came));
        } else if !steps.is_empty() {
            // Withdrawn, as it is when it goes step by step.
            statistics.failed(FailureReason::Canceled, alipes_clock::elapsed(came));
        }
    }
}

/// One tensor of the whole batch: what each request has of it, one behind the other.
pub fn joined(batched: &[BatchedRequest], number: usize) -> Option<OutputTensor> {
    let mut all = batched.iter().map(|one| &one.made[number].1);
    let first = all.next()?;
    if batched.len() == 1 {
        return Some(first.clone());
    }
    let mut whole = first.clone();
    let mut data = Vec::with_capacity(first.data.len() * batched.len());
    data.extend_from_slice(&first.data);
    for part in all {
        data.extend_from_slice(&part.data);
        whole.shape[0] += part.shape[0];
    }
    whole.data = Bytes::from(data);
    Some(whole)
}

fn total<'a>(ran: impl Iterator<Item = &'a Ran>) -> ExecutionTimes {
    ran.fold(ExecutionTimes::default(), |sum, Ran { times, .. }| ExecutionTimes {
        input: sum.input + times.input,
        infer: sum.infer + times.infer,
        output: sum.output + times.output,
    })
}
