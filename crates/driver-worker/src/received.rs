//! What a look into the ring of answers brought: to the callers, and into the statistics.

use std::sync::Arc;
use std::time::Duration;

use alipes_link::{Call, LinkHandle, LogLine};
use alipes_request::responder::{Answer, AnswerBatch, Responder};
use alipes_runtime::model::{ModelVersion, Pending};
use alipes_stats::events::Event;
use alipes_stats::statistics::{Execution, FailureReason};

use super::calls::{self, CallId, EndOfCall, Receipt};
use super::worker::Worker;

/// What a look into the ring of answers brought; to be settled once the worker's lock is released.
#[derive(Default)]
pub struct Received {
    // The process of the worker that sent all this.
    pub life: u64,
    pub outgoing: AnswerBatch,
    pub answers: Vec<(Responder, Option<Answer>)>,
    pub executions: Vec<Execution>,
    pub waited: Vec<Duration>,
    pub succeeded: Vec<Duration>,
    pub first_responses: Vec<Duration>,
    pub failed: Vec<Duration>,
    /// Requests of which the model wants another round.
    pub again: Vec<Pending>,
    /// Warm-up samples of which it wants another round.
    pub samples: Vec<Pending>,
    pub turns: Vec<usize>,
    pub calls: Vec<Call>,
    pub ends_of_calls: Vec<(u64, EndOfCall)>,
    pub logs: Vec<LogLine>,
    pub checked: Vec<(u64, bool)>,
    pub receipts: Vec<Receipt>,
    /// The link to wake where delayed answers to calls were sent.
    pub mailed: Option<LinkHandle>,
    /// The worker is ready to take requests.
    pub ready: bool,
    /// The worker could not load its model.
    pub refused: Option<String>,
    /// The next message is too long for a network thread.
    pub is_long: bool,
}

impl Received {
    /// Records and delivers. The caller has held the delivery lock since it read the ring.
    #[must_use = "calls wait to be started, and turns to be driven"]
    pub fn deliver(self, model: &ModelVersion, worker: &Worker) -> Rest {
        if let Some(link) = &self.mailed {
            link.wake_caller();
        }
        // Before the answers leave: a client that has its answer may change the log's settings, which then hold for
        // later lines only.
        for line in self.logs {
            log(worker, line);
        }
        // Recorded before the answers leave, so that statistics read after an answer include it.
        let (mut succeeded, mut waited) = (self.succeeded.into_iter(), self.waited.into_iter());
        for execution in &self.executions {
            model.statistics.executed(execution, waited.by_ref().take(execution.requests as usize), succeeded.by_ref());
        }
        self.first_responses.iter().for_each(|&spent| model.statistics.first_response(spent));
        succeeded.for_each(|spent| model.statistics.succeeded(spent));
        self.failed.iter().for_each(|&spent| model.statistics.failed(FailureReason::Backend, spent));
        let mut outgoing = self.outgoing;
        for (responder, answer) in self.answers {
            match answer {
                Some(answer) => outgoing.add(responder, answer),
                None => outgoing.finish(responder),
            }
        }
        outgoing.send();
        let Received { life, again, samples, turns, calls, ends_of_calls, checked, receipts, ready, refused, .. } =
            self;
        Rest { life, again, samples, turns, calls, ends_of_calls, checked, receipts, ready, refused }
    }
}

/// What is left to do once the answers are delivered.
pub struct Rest {
    life: u64,
    again: Vec<Pending>,
    samples: Vec<Pending>,
    turns: Vec<usize>,
    calls: Vec<Call>,
    ends_of_calls: Vec<(u64, EndOfCall)>,
    checked: Vec<(u64, bool)>,
    receipts: Vec<Receipt>,
    pub ready: bool,
    pub refused: Option<String>,
}

impl Rest {
    /// Starts calls; gives the turns that are free, to be driven by the caller.
    #[must_use = "a turn that nobody drives is a worker that nobody uses"]
    pub fn settle(self, model: &Arc<ModelVersion>, worker: &Arc<Worker>) -> Vec<usize> {
        // Before the turns are driven: what comes again joins the next batch.
        if !self.again.is_empty() {
            run_again(model, self.again);
        }
        if !self.samples.is_empty() {
            warm_again(worker, self.samples);
        }
        drop(self.receipts);
        for (number, ready) in self.checked {
            worker.checks.answered(number, ready);
        }
        for call in self.calls {
            calls::start(worker, model, self.life, call);
        }
        for (number, end) in self.ends_of_calls {
            calls::end(worker, CallId { life: self.life, number }, end);
        }
        self.turns
    }
}

/// Puts requests back of which the model wants another round. One whose caller has gone is over.
fn run_again(model: &Arc<ModelVersion>, requests: Vec<Pending>) {
    let (gone, mut again): (Vec<_>, Vec<_>) = requests
        .into_iter()
        .filter(|request| !request.is_filler())
        .partition(|request| request.responder.is_cancelled());
    for request in gone {
        model.statistics.failed(FailureReason::Canceled, alipes_clock::elapsed(request.arrived));
        request.responder.dismiss();
    }
    for context in again.iter_mut().filter_map(|request| request.checked.context.as_mut()) {
        context.sequence.start = false;
    }
    let effect = model.with_queue(|queue, now| queue.put_back(now, &mut again.into_iter()));
    model.carry_out(effect);
}

/// Leaves samples of which the model wants another round to who warms the worker up, and who learns that they have no
/// answer yet.
fn warm_again(worker: &Worker, samples: Vec<Pending>) {
    let mut outgoing = AnswerBatch::default();
    for mut sample in samples {
        let responder = std::mem::replace(&mut sample.responder, Responder::nobody());
        worker.state.lock().samples.push(sample);
        outgoing.finish(responder);
    }
    outgoing.send();
}

/// Hands a line to the server's log, if that shows its level.
pub fn log(worker: &Worker, line: LogLine) {
    // Decided here, so that what a client was told of the log's settings holds for all that a model says from then on.
    if let Some(context) = worker.context.upgrade().filter(|context| context.log.shows(line.level)) {
        let LogLine { level, file, line, text } = line;
        context.events.push(Event::Log { source: worker.source.clone(), level, file, line, text });
    }
}
