//! Looks into the ring of answers: what the worker says goes to its place.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use alipes_link::Message;
use alipes_protocol::limits::CHECKED_AT_ONCE_BYTES;
use alipes_request::completion;
use alipes_runtime::model::ModelVersion;

use super::answers::{answered, leave_if_over};
use super::calls::{self, EndOfCall};
use super::executions::executed;
use super::frames::Violation;
use super::received::{Received, log};
use super::worker::{State, Worker};

/// Takes everything out of the ring. A worker whose messages make no sense is ended by its supervisor.
pub fn receive(state: &mut State, worker: &Worker, model: &ModelVersion) -> Received {
    let mut received = Received { life: state.life, ..Default::default() };
    loop {
        if is_long(state) {
            received.is_long = true;
            break;
        }
        let message = match state.link.as_mut().map(|link| link.receive()) {
            Some(Ok(Some(message))) => message,
            None | Some(Ok(None)) => break,
            Some(Err(violation)) => {
                worker.damage.report(violation.to_string());
                break;
            }
        };
        if let Err(violation) = take(&mut received, state, worker, model, message) {
            worker.damage.report(violation);
            break;
        }
    }
    if !received.succeeded.is_empty() {
        worker.useful.store(true, Ordering::Relaxed);
    }
    received.mailed = state.post_mail();
    received
}

/// Whether the next message is too long for this thread, which is one of the network's: words are copied, and counted.
fn is_long(state: &mut State) -> bool {
    let next_bytes = state.link.as_mut().map_or(0, |link| link.next_bytes());
    next_bytes > CHECKED_AT_ONCE_BYTES as u64 && completion::is_network_thread()
}

fn take(
    received: &mut Received,
    state: &mut State,
    worker: &Worker,
    model: &ModelVersion,
    message: Message,
) -> Result<(), Violation> {
    match message {
        Message::Ready { checks } => {
            worker.checks.offer(checks);
            received.ready = true;
        }
        Message::Checked { number, ready } => received.checked.push((number, ready)),
        Message::Failed { text } => received.refused = Some(text),
        Message::Finalized => {}
        Message::Answers { times, tickets, answers } => executed(received, state, model, times, &tickets, answers)?,
        Message::Answer(answer) => {
            let place = (answer.slot, answer.ticket);
            answered(received, state, model, answer)?;
            leave_if_over(received, state, place);
        }
        Message::Released { lease } => {
            received.receipts.extend(state.held.release(lease));
        }
        Message::Call(call) => received.calls.push(call),
        Message::CallCancelled { id } => received.ends_of_calls.push((id, EndOfCall::Cancelled)),
        Message::CallDropped { id } => received.ends_of_calls.push((id, EndOfCall::Dropped)),
        Message::Log(line) => received.logs.push(line),
    }
    Ok(())
}

/// What a worker has said of itself.
#[derive(Default)]
pub struct Drained {
    /// It is ready to take requests.
    pub ready: bool,
    /// Why it could not load its model.
    pub refused: Option<String>,
    /// There is more, which has to be drained on a thread that is none of the network's.
    pub is_long: bool,
}

/// Looks into the ring of answers and settles what is there.
pub fn drain(worker: &Arc<Worker>, model: &Arc<ModelVersion>) -> Drained {
    let delivering = worker.delivering.lock();
    let mut state = worker.state.lock();
    let received = receive(&mut state, worker, model);
    let is_long = received.is_long;
    // A ring that was full has room again.
    let parked = if state.open { std::mem::take(&mut state.parked) } else { Vec::new() };
    drop(state);
    let mut rest = received.deliver(model, worker);
    drop(delivering);
    let drained = Drained { ready: rest.ready, refused: rest.refused.take(), is_long };
    for turn in parked.into_iter().chain(rest.settle(model, worker)) {
        model.driver.start(model, turn);
    }
    drained
}

/// Receives a worker's final messages after its model is gone: `finalize` may log, and release its metrics.
pub fn drain_final(worker: &Arc<Worker>) {
    loop {
        let mut state = worker.state.lock();
        let life = state.life;
        let message = state.link.as_mut().map(|link| link.receive());
        drop(state);
        match message {
            Some(Ok(Some(Message::Log(line)))) => log(worker, line),
            Some(Ok(Some(Message::Call(call)))) => calls::start_last(worker, life, call),
            Some(Ok(Some(_))) => {}
            Some(Err(violation)) => return worker.damage.report(violation.to_string()),
            None | Some(Ok(None)) => return,
        }
    }
}
