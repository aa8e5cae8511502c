//! What every driver records of an execution.

use std::time::{Duration, Instant};

use alipes_protocol::Tensor;
use alipes_protocol::trace::{Moment, Side, Trace};
use alipes_stats::clock;
use alipes_stats::statistics::{ExecutionTimes, FailureReason};

use crate::model::{ModelVersion, Pending};

/// Removes the requests whose callers have gone, and counts them as cancelled.
pub fn withdraw_cancelled(model: &ModelVersion, batch: &mut Vec<Pending>, now: Instant) {
    batch.retain(|pending| {
        let cancelled = pending.responder.is_cancelled();
        if cancelled {
            model.statistics.failed(FailureReason::Canceled, now.duration_since(pending.arrived));
        }
        !cancelled
    });
}

/// Notes the moments of an execution, and its outputs, in a request's trace.
#[cold]
pub fn note_execution(trace: &Trace, claimed_at: Instant, times: ExecutionTimes, outputs: &[Tensor]) {
    let began = clock::ns(claimed_at);
    let span = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let input_end = began.saturating_add(span(times.input));
    let output_start = input_end.saturating_add(span(times.infer));
    trace.note(Moment::ComputeStart, began);
    trace.note(Moment::ComputeInputEnd, input_end);
    trace.note(Moment::ComputeOutputStart, output_start);
    trace.note(Moment::ComputeEnd, output_start.saturating_add(span(times.output)));
    trace.note_tensors(Side::BackendOutput, outputs);
    let now = clock::now_ns();
    trace.note_response(now);
    trace.note(Moment::RequestEnd, now);
}
