//! The end of a worker's process: what happens to its requests, and what the log and the load of the model learn.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use alipes_protocol::{Code, InferError, Origin};
use alipes_request::responder::AnswerBatch;
use alipes_runtime::model::{ModelVersion, Pending};
use alipes_runtime::sequences::StateTable;
use alipes_stats::clock;
use alipes_stats::events::WorkerState;
use alipes_stats::statistics::FailureReason;

use super::calls;
use super::faults::{Fault, Lived, worker_word};
use super::worker::Worker;

/// Handles the end of a process: fails the requests that it was executing, requeues those that it had not claimed, and
/// frees its memory.
pub fn on_exit(worker: &Arc<Worker>, fault: &Fault) {
    worker.up.store(false, Ordering::Release);
    *worker.process.lock() = None;
    let mut guard = worker.state.lock();
    let state = &mut *guard;
    state.open = false;
    state.watched = false;
    state.life += 1;
    let link = state.link.take();
    let (mut lost, mut unclaimed): (Vec<Lost>, Vec<Pending>) = Default::default();
    for (slot, request) in state.slots.drain() {
        let Some(pending) = request.pending.filter(|_| !request.is_filler) else { continue };
        let ours = request.turn.is_some() && link.as_ref().is_none_or(|link| link.revoke(slot, request.ticket));
        if ours {
            unclaimed.push(pending);
        } else {
            lost.push(Lost { pending, responded: request.responded });
        }
    }
    let ended = state.turns.clear();
    state.parked.extend(&ended);
    let held = std::mem::take(&mut state.held);
    state.mail.clear();
    state.states = StateTable::default();
    drop(guard);
    calls::abandon(worker);
    // Its receipts tell nobody any more.
    drop(held);
    worker.checks.abandon();
    if let Some(model) = worker.model() {
        if let Some(limited) = &model.limited {
            ended.iter().for_each(|&turn| limited.end_use(turn, true));
        }
        let effect = model.with_queue(|queue, now| queue.put_back(now, &mut unclaimed.into_iter()));
        model.carry_out(effect);
        // Before anybody is told: whose sequence was lost may begin it again at once, and others ask for theirs.
        if model.sequences.is_some() {
            end_sequences(&model, worker, fault);
        }
        fail(&model, lost, &fault.error(&worker.source.instance, worker.host.is_script()));
    }
}

/// What the process knew of its sequences is gone with it: they are over, except those that have yet to begin.
fn end_sequences(model: &Arc<ModelVersion>, worker: &Worker, fault: &Fault) {
    let mut waiting = Vec::new();
    let effect = model.with_queue(|queue, now| queue.lose(now, worker.numbers.turn(0), &mut waiting));
    model.carry_out(effect);
    let text = format!(
        "the sequence is over, since the {} '{}' that had it {}; begin it again",
        worker_word(worker.host.is_script()),
        worker.source.instance,
        fault.text()
    );
    fail(model, unanswered(waiting), &InferError::new(Code::Unavailable, text));
}

/// A request that will not be executed to its end.
struct Lost {
    pending: Pending,
    /// It was given a response.
    responded: bool,
}

fn unanswered(requests: Vec<Pending>) -> Vec<Lost> {
    requests.into_iter().map(|pending| Lost { pending, responded: false }).collect()
}

fn fail(model: &ModelVersion, requests: Vec<Lost>, error: &InferError) {
    let mut outgoing = AnswerBatch::default();
    for Lost { pending, responded } in requests {
        if let Some(trace) = &pending.trace {
            trace.note_response(clock::now_ns());
        }
        let spent = alipes_clock::elapsed(pending.arrived);
        if responded {
            model.statistics.failed(FailureReason::Backend, spent);
        } else {
            model.statistics.failed_unanswered(FailureReason::Backend, spent);
        }
        outgoing.add(pending.responder, Err(error.clone().at(Origin::Model)));
    }
    outgoing.send();
}

/// Reports the end of a process to the log. Where a start has failed and no other worker is up, the waiting requests
/// fail: nothing says when there will be a worker.
pub fn report_exit(worker: &Worker, fault: &Fault, lived: Lived, pause: Duration) {
    let state = if lived == Lived::Never { WorkerState::Failed } else { WorkerState::Died };
    let next = if pause.is_zero() { String::new() } else { format!("; next start in {} s", pause.as_secs_f64()) };
    worker.log(state, format!("{}{next}", fault.text()));
    let Some(model) = worker.model().filter(|_| state == WorkerState::Failed) else { return };
    if model.is_ready() {
        return;
    }
    model.failing.store(true, Ordering::Release);
    let mut waiting = Vec::new();
    let effect = model.with_queue(|queue, now| queue.cancel(now, &mut |_| true, &mut waiting));
    model.carry_out(effect);
    fail(&model, unanswered(waiting), &InferError::new(Code::Unavailable, model.failing_text()));
}

/// Why a model could not be loaded.
pub fn load_error(worker: &Worker, fault: &Fault) -> InferError {
    match fault {
        Fault::Start(text) => InferError::internal(text.clone()),
        Fault::Warmup(text) => InferError::invalid(text.clone()),
        Fault::Cancelled => InferError::new(Code::Unavailable, fault.text()),
        other => InferError::internal(format!(
            "{} '{}' {} while it was loading its model",
            worker_word(worker.host.is_script()),
            worker.source.instance,
            other.text()
        )),
    }
}
