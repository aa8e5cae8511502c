//! From the ring of answers to the callers, and into the statistics.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use alipes_link::{Answer as WorkerAnswer, Call, LinkHandle, LogLine, Message, Outcome, Output, OutputData};
use alipes_link::{OwnedTensorName, Placed, Times};
use alipes_protocol::error::TABLE;
use alipes_protocol::limits::CHECKED_AT_ONCE_BYTES;
use alipes_protocol::trace::{Moment, Side, Trace};
use alipes_protocol::{Code, InferError, Origin, Tensor, call};
use alipes_request::completion;
use alipes_request::responder::{Answer, AnswerBatch, Reply, Responder};
use alipes_runtime::executor::reshape::wire_shape;
use alipes_runtime::model::{ModelVersion, Pending};
use alipes_runtime::sequences::{self, Sequences, StateTable, StateTensor};
use alipes_scheduler::Work;
use alipes_spec::EngineSpec;
use alipes_stats::clock;
use alipes_stats::events::Event;
use alipes_stats::statistics::{Execution, ExecutionTimes, FailureReason};
use bytes::Bytes;

use super::calls;
use super::calls::{CallId, EndOfCall, Receipt};
use super::worker::{State, Worker};
use super::{claim_limit, forms_batches};

/// What a look into the ring of answers brought; to be settled once the worker's lock is released.
#[derive(Default)]
pub struct Received {
    // The process of the worker that sent all this.
    life: u64,
    outgoing: AnswerBatch,
    answers: Vec<(Responder, Option<Answer>)>,
    executions: Vec<Execution>,
    waited: Vec<Duration>,
    succeeded: Vec<Duration>,
    first_responses: Vec<Duration>,
    failed: Vec<Duration>,
    /// Requests of which the model wants another round.
    again: Vec<Pending>,
    /// Warm-up samples of which it wants another round.
    samples: Vec<Pending>,
    turns: Vec<usize>,
    calls: Vec<Call>,
    ends_of_calls: Vec<(u64, EndOfCall)>,
    logs: Vec<LogLine>,
    checked: Vec<(u64, bool)>,
    receipts: Vec<Receipt>,
    /// The link to wake where delayed answers to calls were sent.
    mailed: Option<LinkHandle>,
    /// The worker is ready to take requests.
    ready: bool,
    /// The worker could not load its model.
    refused: Option<String>,
    /// The next message is too long for a network thread.
    is_long: bool,
}

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

/// Why a message cannot be from a sound worker.
type Violation = String;

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

/// One `execute` has returned.
fn executed(
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

/// One answer to a request.
fn answered(
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

/// The bytes of a worker's tensor, which may lie in what it was given with its request.
pub fn bytes(tensor: &Output, placed: Option<&Placed>) -> Result<Bytes, Violation> {
    match (&tensor.data, placed) {
        (OutputData::Bytes(data), _) => Ok(data.clone()),
        (OutputData::Input { .. }, Some(placed)) => tensor.resolve(placed).map_err(|violation| violation.text),
        (OutputData::Input { .. }, None) => Err("a tensor lies in the memory of a request that is over".into()),
    }
}

/// A code by its number, which is that of `TRITONSERVER_Error_Code` where Triton has the code.
fn code(number: u8) -> Code {
    TABLE.get(usize::from(number)).map_or(Code::Unknown, |row| row.code)
}

fn unknown(slot: u32, ticket: u64) -> Violation {
    format!("it answered request {ticket} in lane {slot}, which it does not hold")
}

fn leave_if_over(received: &mut Received, state: &mut State, (slot, ticket): (u32, u64)) {
    if state.slots.get(slot, ticket).is_some_and(|request| request.is_over())
        && let Some(request) = state.slots.take(slot, ticket)
    {
        received.turns.extend(state.end_turn(&request));
    }
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
    ready: bool,
    refused: Option<String>,
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

fn log(worker: &Worker, line: LogLine) {
    // Decided here, so that what a client was told of the log's settings holds for all that a model says from then on.
    if let Some(context) = worker.context.upgrade().filter(|context| context.log.shows(line.level)) {
        let LogLine { level, file, line, text } = line;
        context.events.push(Event::Log { source: worker.source.clone(), level, file, line, text });
    }
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

/// A caller has gone: a request that the worker has not claimed is revoked, a claimed one is cancelled.
pub fn withdraw(worker: &Arc<Worker>, slot: u32, ticket: u64) {
    let Some(model) = worker.model() else { return };
    let mut guard = worker.state.lock();
    let state = &mut *guard;
    let Some(link) = state.link.as_ref() else { return };
    // In a sequence what comes next would be wrong without it.
    if model.sequences.is_some() || !link.revoke(slot, ticket) {
        link.cancel(slot, ticket);
        return;
    }
    let Some(request) = state.slots.take(slot, ticket) else { return };
    let freed = state.end_turn(&request);
    drop(guard);
    model.statistics.failed(FailureReason::Canceled, alipes_clock::elapsed(request.arrived));
    // Without the lock: others may have waited for their turn behind it, and be told now.
    drop(request);
    if let Some(turn) = freed {
        model.driver.start(&model, turn);
    }
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
