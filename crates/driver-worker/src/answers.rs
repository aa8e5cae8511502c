//! One answer to a request: what the worker says of it, checked, as what its caller gets.

use alipes_link::{Answer as WorkerAnswer, Outcome, Output, OwnedTensorName, Placed};
use alipes_protocol::error::TABLE;
use alipes_protocol::trace::{Moment, Side, Trace};
use alipes_protocol::{Code, InferError, Origin, Tensor, call};
use alipes_request::responder::{Answer, Reply};
use alipes_runtime::executor::reshape::wire_shape;
use alipes_runtime::model::{ModelVersion, Pending};
use alipes_runtime::sequences::{self, Sequences, StateTable, StateTensor};
use alipes_scheduler::Work;
use alipes_spec::EngineSpec;
use alipes_stats::clock;
use bytes::Bytes;

use super::frames::{Violation, bytes};
use super::received::Received;
use super::worker::State;

/// One answer to a request.
pub fn answered(
    received: &mut Received,
    state: &mut State,
    model: &ModelVersion,
    answer: WorkerAnswer,
) -> Result<(), Violation> {
    let WorkerAnswer { slot, ticket, last, released, outcome } = answer;
    let request = state.slots.get(slot, ticket).ok_or_else(|| unknown(slot, ticket))?;
    let pending =
        request.pending.as_mut().ok_or_else(|| format!("it answered request {ticket} after its last answer"))?;
    request.failed |= matches!(outcome, Outcome::Error { backend: true, .. });
    if matches!(outcome, Outcome::Again) {
        if !last || !model.sequences.as_ref().is_some_and(|sequences| sequences.iterative) {
            return Err(format!("it asked for another round of request {ticket}, which there is not"));
        }
        let again = if request.turn.is_some() { &mut received.again } else { &mut received.samples };
        again.extend(request.pending.take());
        if let Some(placed) = request.placed.take().filter(|_| !released) {
            state.held.keep(ticket, placed, None);
        }
        return Ok(());
    }
    let outcome = match &model.sequences {
        Some(sequences) => keep(sequences, &mut state.states, pending, request.placed.as_ref(), last, outcome)?,
        None => outcome,
    };
    let reply = reply(model, pending.checked.is_call, request.placed.as_ref(), outcome)?;
    if let Some(trace) = &request.trace {
        note_answer(trace, reply.as_ref(), last);
    }
    if reply.is_some() && !request.responded {
        request.responded = true;
        if model.statistics.wants_first_responses() && !request.is_filler {
            received.first_responses.push(alipes_clock::elapsed(request.arrived));
        }
    }
    if !last {
        if let Some(reply) = reply {
            received.outgoing.respond(&mut pending.responder, reply);
        }
        return Ok(());
    }
    let spent = alipes_clock::elapsed(request.arrived);
    match (request.is_filler, request.failed) {
        (true, _) => {}
        (false, true) => received.failed.push(spent),
        (false, false) => received.succeeded.push(spent),
    }
    received.answers.extend(request.pending.take().map(|pending| (pending.responder, reply)));
    if let Some(placed) = request.placed.take().filter(|_| !released) {
        state.held.keep(ticket, placed, None);
    }
    Ok(())
}

/// Lets a request go of which nothing more is to come.
pub fn leave_if_over(received: &mut Received, state: &mut State, (slot, ticket): (u32, u64)) {
    if state.slots.get(slot, ticket).is_some_and(|request| request.is_over())
        && let Some(request) = state.slots.take(slot, ticket)
    {
        received.turns.extend(state.end_turn(&request));
    }
}

/// Keeps the states that a response renews, and leaves of it what its caller asked for.
fn keep(
    sequences: &Sequences,
    states: &mut StateTable,
    pending: &Pending,
    placed: Option<&Placed>,
    last: bool,
    mut outcome: Outcome,
) -> Result<Outcome, Violation> {
    let slot = sequences::slot(pending.slot_id());
    if let Outcome::Response { outputs, .. } = &mut outcome {
        for output in outputs.iter().filter(|_| !pending.is_filler()) {
            let OwnedTensorName::Index(index) = output.name else { continue };
            if let Some(state) = sequences.states.renewed_by(usize::from(index)) {
                // A copy, since the worker's memory is for answers, which do not stay.
                let data = Bytes::copy_from_slice(&bytes(output, placed)?);
                states.set(&sequences.states, slot, state, StateTensor { shape: output.shape.clone(), data });
            }
        }
        outputs.retain(|output| match output.name {
            OwnedTensorName::Index(index) => pending.checked.outputs.contains(&usize::from(index)),
            OwnedTensorName::Name(_) => true,
        });
    }
    if last && pending.sequence().end {
        states.clear(slot);
    }
    Ok(outcome)
}

#[cold]
fn note_answer(trace: &Trace, reply: Option<&Answer>, last: bool) {
    let now = clock::now_ns();
    if let Some(answer) = reply {
        trace.note_response(now);
        trace.note_tensors(Side::BackendOutput, answer.iter().flat_map(|reply| &reply.outputs));
    }
    if last {
        trace.note(Moment::RequestEnd, now);
    }
}

fn reply(
    model: &ModelVersion,
    is_call: bool,
    placed: Option<&Placed>,
    outcome: Outcome,
) -> Result<Option<Answer>, Violation> {
    match outcome {
        Outcome::Empty | Outcome::Again => Ok(None),
        Outcome::Error { code: number, text, .. } => {
            Ok(Some(Err(InferError::new(code(number), public(model, text)).at(Origin::Model))))
        }
        Outcome::Response { mut outputs, parameters } => {
            // A worker that is asked for all outputs gives the one of calls as well, where the model says so.
            outputs.retain(|output| is_call == is_body(model, output));
            let outputs: Result<_, _> = outputs.into_iter().map(|output| tensor(model, placed, output)).collect();
            Ok(Some(Ok(Reply { outputs: outputs?, parameters })))
        }
    }
}

/// The text of a model's error as callers may see it: without paths of folders for temporary files.
fn public(model: &ModelVersion, text: String) -> String {
    let EngineSpec::Worker(worker) = &model.spec.engine else { return text };
    worker.hidden.iter().fold(
        text,
        |text, (path, shown)| {
            if text.contains(path) { text.replace(path, shown) } else { text }
        },
    )
}

/// Whether an output is the one of calls, which stands behind the declared ones.
fn is_body(model: &ModelVersion, output: &Output) -> bool {
    model.spec.endpoint.is_some()
        && matches!(output.name, OwnedTensorName::Index(index) if usize::from(index) == model.spec.outputs.len())
}

fn tensor(model: &ModelVersion, placed: Option<&Placed>, output: Output) -> Result<Tensor, Violation> {
    if is_body(model, &output) {
        let data = bytes(&output, placed)?;
        return Ok(Tensor { name: call::BODY.into(), datatype: output.datatype, shape: output.shape, data });
    }
    let port = match &output.name {
        OwnedTensorName::Index(index) => model.spec.outputs.get(usize::from(*index)),
        OwnedTensorName::Name(name) => model.spec.outputs.iter().find(|port| port.name == name.as_str()),
    };
    let port = port.ok_or_else(|| format!("it gave an output that model '{}' does not have", model.name))?;
    let data = bytes(&output, placed)?;
    let shape = wire_shape(port, model.spec.max_batch_size > 0, output.shape);
    Ok(Tensor { name: port.name.as_str().into(), datatype: output.datatype, shape, data })
}

/// A code by its number, which is that of `TRITONSERVER_Error_Code` where Triton has the code.
fn code(number: u8) -> Code {
    TABLE.get(usize::from(number)).map_or(Code::Unknown, |row| row.code)
}

/// The worker names a request that it does not hold.
pub fn unknown(slot: u32, ticket: u64) -> Violation {
    format!("it answered request {ticket} in lane {slot}, which it does not hold")
}
