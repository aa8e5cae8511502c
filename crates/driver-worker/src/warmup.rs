//! Samples that a worker executes after it has loaded its model and before it takes requests, at each of its starts.

use std::sync::Arc;

use alipes_protocol::{Code, InferError};
use alipes_request::mailbox::Responses;
use alipes_request::responder::Responder;
use alipes_runtime::model::{ModelVersion, Pending};
use smallvec::SmallVec;

use super::caller::{Caller, Watch};
use super::place::{Entered, Written, arena_is_full, enter, write};
use super::worker::Worker;

/// Has a worker execute the samples of its model, one after the other.
///
/// # Errors
///
/// The first sample that fails.
pub async fn warm_up(worker: Arc<Worker>) -> Result<(), InferError> {
    let count = worker.model().map_or(0, |model| model.samples.len());
    // Of a process that has ended.
    worker.state.lock().samples.clear();
    for at in 0..count {
        let mut run = 0;
        // The model is not held while a sample is executed: what waits for its end would wait for it else.
        while let Some(model) = worker.model().filter(|model| run < model.samples[at].count) {
            let sample = &model.samples[at];
            sample.announce(&model, &worker.source.instance, run);
            let request = |number| sample.pending(number, Responder::nobody());
            let mut requests: Vec<Pending> = (0..sample.requests).map(request).collect();
            drop(model);
            let mut failed = Vec::new();
            while let Some(model) = worker.model().filter(|_| !requests.is_empty()) {
                let answers = place(&worker, &model, requests)?;
                drop(model);
                failed.extend(errors(answers).await);
                requests = again(&worker);
            }
            if let Some(model) = worker.model() {
                model.samples[at].judge(failed.into_iter().map(Err))?;
            }
            run += 1;
        }
    }
    Ok(())
}

/// Brings the requests of one execution to the worker, which claims them together.
fn place(worker: &Arc<Worker>, model: &ModelVersion, requests: Vec<Pending>) -> Result<Vec<Responses>, InferError> {
    let mut written: SmallVec<[Written; 1]> = SmallVec::new();
    let mut answers = Vec::new();
    for mut pending in requests {
        let (responder, responses) = Responder::stream();
        pending.responder = responder;
        let placed = write(model, worker, &pending).ok_or_else(|| arena_is_full(worker))?;
        let ticket = worker.tickets.next();
        let caller = Caller::new(worker, ticket);
        pending.responder.observe(Watch(Arc::clone(&caller)));
        written.push(Written { pending, placed, ticket, caller });
        answers.push(responses);
    }
    let Some(group) = written.first().map(|first| first.ticket) else { return Ok(answers) };
    let mut state = worker.state.lock();
    let outcome = enter(&mut state, worker, None, group, written);
    drop(state);
    match outcome {
        Entered::Yes(entered) => entered.wake(),
        Entered::NotNow(pending) => {
            pending.into_iter().for_each(|pending| pending.responder.dismiss());
            let text = format!("the worker process of '{}' cannot take its samples", worker.source.instance);
            return Err(InferError::new(Code::Unavailable, text));
        }
        Entered::Refused(pending, error) => {
            pending.into_iter().for_each(|pending| pending.responder.dismiss());
            return Err(error);
        }
    }
    Ok(answers)
}

/// The requests of which the model wants another round.
fn again(worker: &Worker) -> Vec<Pending> {
    let mut requests = std::mem::take(&mut worker.state.lock().samples);
    for context in requests.iter_mut().filter_map(|request| request.checked.context.as_mut()) {
        context.sequence.start = false;
    }
    requests
}

/// What fails among the answers, once all of them have come.
async fn errors(answers: Vec<Responses>) -> Vec<InferError> {
    let mut errors = Vec::new();
    for mut responses in answers {
        while let Some(response) = responses.next().await {
            errors.extend(response.answer.and_then(Result::err));
        }
    }
    errors
}
