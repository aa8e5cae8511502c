//! The end of an execution: what `execute` returned is checked, and all its requests are answered in one message.

use std::sync::Arc;

use alipes_link::{LogLine, OutAnswer, OutMessage, OutOutcome, Times, monotonic_ns};
use pyo3::prelude::*;
use pyo3::types::PyList;
use smallvec::SmallVec;

use super::errors::{INTERNAL, class_text};
use super::link::Link;
use super::missing_response::{MissingReason, failure};
use super::outputs::Draft;
use super::reply::Reply;
use super::response::InferenceResponse;

/// Requests that are executed together.
pub struct Batch {
    pub replies: SmallVec<[Arc<Reply>; 8]>,
    pub claimed_ns: u64,
    pub began_ns: u64,
}

/// An answer that is about to be sent.
struct Line<'a> {
    reply: &'a Reply,
    released: bool,
    draft: Draft,
}

type Drafts = Vec<Option<Draft>>;

/// Answers a batch with what `execute` returned, or with the text of its failure.
///
/// `requests`, where they are still there, and the returned object are dropped on the way, so that inputs which nobody
/// else kept are free when the answers are sent: outputs that lie in them need no copy then.
pub fn settle(
    py: Python<'_>,
    link: &Link,
    batch: Batch,
    requests: Option<Bound<'_, PyList>>,
    returned: Result<Bound<'_, PyAny>, String>,
) {
    // A process that was forked in the execution, and came back from it: its parent answers.
    if link.is_forked() {
        return;
    }
    let ended_ns = monotonic_ns();
    link.set_parent(0);
    let drafts = returned.and_then(|value| check(link, &value, &batch.replies));
    drop(requests);
    let lines = match drafts {
        Ok(drafts) => lines(py, &batch.replies, drafts),
        Err(text) => failures(py, link, &batch.replies, &failure(&link.declaration.instance, &text)),
    };
    let times = Times { claimed_ns: batch.claimed_ns, began_ns: batch.began_ns, ended_ns };
    send(py, link, times, &batch.replies, &lines);
}

/// Checks what `execute` returned, in Triton's order and with Triton's texts.
fn check(link: &Link, value: &Bound<'_, PyAny>, replies: &[Arc<Reply>]) -> Result<Drafts, String> {
    if value.is_none() {
        replies.iter().for_each(|reply| reply.missing_reasons.add(MissingReason::NoList));
        return Ok(replies.iter().map(|_| None).collect());
    }
    if link.declaration.decoupled {
        let instance = &link.declaration.instance;
        return Err(format!(
            "Python model '{instance}' is using the decoupled mode and the execute function must return None."
        ));
    }
    let list = value
        .cast::<PyList>()
        .map_err(|_| format!("Expected a list in the execute return, found type '{}'.", class_text(value)))?;
    if list.len() != replies.len() {
        return Err(format!(
            "Number of InferenceResponse objects do not match the number of InferenceRequest objects. \
             InferenceRequest(s) size is:{}, and InferenceResponse(s) size is:{}\n",
            replies.len(),
            list.len()
        ));
    }
    list.iter().zip(replies).map(|(item, reply)| draft(&item, reply)).collect()
}

fn draft(item: &Bound<'_, PyAny>, reply: &Reply) -> Result<Option<Draft>, String> {
    let py = item.py();
    if item.is_none() {
        reply.missing_reasons.add(MissingReason::NoResponse);
        return Ok(None);
    }
    if reply.missing_reasons.has(MissingReason::Rescheduled) {
        return Err(format!(
            "Expected a None object in the execute function return list for reschduled request, found type '{}'.",
            class_text(item)
        ));
    }
    let response = item.cast::<InferenceResponse>().map_err(|_| {
        let class = class_text(item);
        format!("Expected an 'InferenceResponse' object in the execute function return list, found type '{class}'.")
    })?;
    match reply.open_after(py) {
        Some(0) => Draft::of(py, response.get(), reply).map(Some).map_err(|error| error.to_string()),
        _ => Err("Unable to send response. Non-decoupled model cannot send more than one response.".to_owned()),
    }
}

/// The answers of an execution that went well. A request without one is left to its response sender, or closed where
/// nobody can answer it any more.
fn lines<'a>(py: Python<'_>, replies: &'a [Arc<Reply>], drafts: Drafts) -> Vec<Line<'a>> {
    let answered = replies.iter().zip(drafts).filter_map(|(reply, draft)| {
        let draft = match draft {
            Some(draft) => reply.close(py).map(|_| draft)?,
            None if Arc::strong_count(reply) > 1 => return None,
            None => reply.closing(reply.close(py)?),
        };
        Some(line(reply, draft))
    });
    answered.collect()
}

/// The same failure for all that are not answered yet; it is logged once.
fn failures<'a>(py: Python<'_>, link: &Link, replies: &'a [Arc<Reply>], text: &str) -> Vec<Line<'a>> {
    log_failure(py, link, text);
    let open = replies.iter().filter(|reply| reply.close(py).is_some());
    open.map(|reply| line(reply, Draft::raised(text.to_owned()))).collect()
}

fn line(reply: &Reply, mut draft: Draft) -> Line<'_> {
    let released = reply.loan.settle();
    if released {
        draft.seal();
    }
    Line { reply, released, draft }
}

/// Tells the server's log of a failed execution.
pub fn log_failure(py: Python<'_>, link: &Link, text: &str) {
    let line = LogLine { level: 0, file: "answers.rs".to_owned(), line: line!(), text: text.to_owned() };
    let _ = link.send(py, &OutMessage::Log(&line), 0);
}

fn send(py: Python<'_>, link: &Link, times: Times, replies: &[Arc<Reply>], lines: &[Line<'_>]) {
    let tickets: SmallVec<[(u32, u64); 8]> = replies.iter().map(|reply| (reply.slot, reply.ticket)).collect();
    let answers: Vec<OutAnswer<'_>> = lines.iter().map(Line::answer).collect();
    let bytes = lines.iter().map(|line| line.draft.bytes()).sum();
    let message = |answers| OutMessage::Answers { times: Some(times), tickets: &tickets, answers };
    if link.send(py, &message(&answers), bytes).is_err() {
        // Together they are too large: one by one, so that only those that are too large by themselves fail.
        py.detach(|| answers.iter().for_each(|answer| send_alone(link, answer)));
        let _ = link.send(py, &message(&[]), 0);
    }
    for line in lines {
        if line.reply.loan.end(line.released) {
            link.release(line.reply.ticket);
        }
    }
}

fn send_alone(link: &Link, answer: &OutAnswer<'_>) {
    if let Err(error) = link.end.send(&OutMessage::Answer(answer)) {
        let text = error.to_string();
        let outcome = OutOutcome::Error { code: INTERNAL, text: &text, backend: true };
        let OutAnswer { slot, ticket, last, released, .. } = *answer;
        let _ = link.end.send(&OutMessage::Answer(&OutAnswer { slot, ticket, last, released, outcome }));
    }
}

impl Line<'_> {
    fn answer(&self) -> OutAnswer<'_> {
        let (slot, ticket) = (self.reply.slot, self.reply.ticket);
        OutAnswer { slot, ticket, last: true, released: self.released, outcome: self.draft.outcome() }
    }
}
