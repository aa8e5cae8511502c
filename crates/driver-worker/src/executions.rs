//! One `execute` that has returned: its times, its answers, and the turns that it ends.

use std::mem;
use std::time::Duration;

use alipes_link::{Answer as WorkerAnswer, Times};
use alipes_protocol::trace::Moment;
use alipes_runtime::model::ModelVersion;
use alipes_stats::clock;
use alipes_stats::statistics::{Execution, ExecutionTimes};

use super::answers::{answered, leave_if_over, unknown};
use super::frames::Violation;
use super::received::Received;
use super::worker::State;
use super::{claim_limit, forms_batches};

/// One `execute` has returned.
pub fn executed(
    received: &mut Received,
    state: &mut State,
    model: &ModelVersion,
    times: Option<Times>,
    tickets: &[(u32, u64)],
    answers: Vec<WorkerAnswer>,
) -> Result<(), Violation> {
    if let Some(times) = &times {
        note_execution(state, times, tickets);
    }
    for answer in answers {
        answered(received, state, model, answer)?;
    }
    let claimed = times.as_ref().map(|times| clock::instant(times.claimed_ns));
    let mut times = times.as_ref().map_or_else(Default::default, parts);
    let by_turns = ran_by_turns(state, model, tickets);
    if by_turns {
        times = share(&times, tickets.len());
    }
    let mut execution = Execution { times, ..Default::default() };
    for &(slot, ticket) in tickets {
        let request = state.slots.get(slot, ticket).ok_or_else(|| unknown(slot, ticket))?;
        request.executed = true;
        if let Some(shares) = &request.shares {
            shares.add(&execution.times);
        }
        execution.batch_size += request.rows;
        if !request.failed && !request.is_filler {
            execution.rows += request.rows;
            execution.requests += 1;
            let waited = claimed.map(|claimed| claimed.saturating_duration_since(request.arrived));
            received.waited.push(waited.unwrap_or_default());
        }
        if by_turns {
            received.executions.push(mem::replace(&mut execution, Execution { times, ..Default::default() }));
        }
    }
    if !by_turns {
        received.executions.push(execution);
    }
    let goes_on = ends_with_execution(model);
    for &place in tickets {
        if goes_on {
            received.turns.extend(end_turn_early(state, place));
        }
        leave_if_over(received, state, place);
    }
    Ok(())
}

/// Whether the queue of a model goes on once `execute` has returned, as in Triton, though responses may still follow: a
/// model may keep a request until the next one of its sequence, or the next batch, has come. A turn of a queue that
/// does not form batches is a request that the worker holds, of which it holds many; the next request of a sequence
/// with implicit state needs the last response before it, and another round of an iterative one its turn.
fn ends_with_execution(model: &ModelVersion) -> bool {
    model.spec.decoupled
        && forms_batches(&model.spec)
        && model.sequences.as_ref().is_none_or(|sequences| !sequences.iterative && sequences.states.is_empty())
}

/// Ends the turn of a request that has been executed, whether or not it is answered. The turn that is free now, if any.
fn end_turn_early(state: &mut State, (slot, ticket): (u32, u64)) -> Option<usize> {
    let group = state.slots.get(slot, ticket)?.turn.take()?;
    state.turns.end(group)
}

/// Notes the moments of an execution with those of its requests that are traced.
fn note_execution(state: &mut State, times: &Times, tickets: &[(u32, u64)]) {
    for &(slot, ticket) in tickets {
        if let Some(trace) = state.slots.get(slot, ticket).and_then(|request| request.trace.as_ref()) {
            trace.note(Moment::ComputeStart, times.claimed_ns);
            trace.note(Moment::ComputeInputEnd, times.began_ns);
            trace.note(Moment::ComputeOutputStart, times.ended_ns);
            trace.note(Moment::ComputeEnd, clock::now_ns());
        }
    }
}

fn parts(times: &Times) -> ExecutionTimes {
    let span = |from: u64, to: u64| Duration::from_nanos(to.saturating_sub(from));
    ExecutionTimes {
        input: span(times.claimed_ns, times.began_ns),
        infer: span(times.began_ns, times.ended_ns),
        output: Duration::from_nanos(clock::now_ns().saturating_sub(times.ended_ns)),
    }
}

/// Whether a model that does not batch was given several requests at once, as workers with an endpoint are, and ran
/// them one after the other: then each counts by itself. The samples of a warm-up, which have no turn, are one batch.
fn ran_by_turns(state: &mut State, model: &ModelVersion, tickets: &[(u32, u64)]) -> bool {
    if model.spec.endpoint.is_none() || claim_limit(&model.spec) > 0 {
        return false;
    }
    let &[(slot, ticket), _, ..] = tickets else { return false };
    state.slots.get(slot, ticket).is_some_and(|request| request.turn.is_some())
}

/// The part of each of so many requests.
fn share(times: &ExecutionTimes, requests: usize) -> ExecutionTimes {
    let requests = u32::try_from(requests).unwrap_or(u32::MAX);
    let ExecutionTimes { input, infer, output } = *times;
    ExecutionTimes { input: input / requests, infer: infer / requests, output: output / requests }
}
