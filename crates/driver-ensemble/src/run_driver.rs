//! Drives one run of an ensemble: when a step has answered, calls the next steps or answers the caller.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Weak};
use std::time::Instant;

use alipes_protocol::trace::{Moment, Side};
use alipes_protocol::{Code, InferError, Origin, SequenceInfo, Tensor};
use alipes_request::chain::Chain;
use alipes_request::check::{Checked, RequestContext, Terms};
use alipes_request::mailbox::{Caller, Mailbox, Reader, Response};
use alipes_request::responder::{Answer, AnswerBatch, Reply, Responder};
use alipes_runtime::executor::alarm;
use alipes_runtime::executor::reshape::wire_shape;
use alipes_runtime::model::waiting::Wait;
use alipes_runtime::model::{Arrival, ModelVersion, Pending, PendingRequest};
use alipes_scheduler::ensemble::{Action, EnsembleRun, Ticket};
use alipes_stats::clock;
use alipes_stats::statistics::{Execution, FailureReason, Shares};
use alipes_stats::trace::underway::Underway;
use smallvec::SmallVec;

use super::run::{self, Event, Run};
use super::semaphore::Permit;
use super::step::{self, Prepared, Value};
use super::{Ensemble, Members, fused};

/// One request's run through an ensemble; one thread at a time has it.
pub struct RunDriver {
    ensemble: Arc<Ensemble>,
    members: Members,
    request: Request,
    run: EnsembleRun<Value>,
    actions: Vec<Action<Value>>,
    /// By the number of the call.
    calls: Vec<Option<Ongoing>>,
    /// Calls that wait for a permit of their step.
    held_back: Vec<HeldBack>,
    /// Where it is found when there is.
    itself: Weak<Run>,
    /// Responses of a decoupled ensemble that the caller has not taken, oldest first.
    untaken: VecDeque<usize>,
    /// Where the answers of all steps arrive. Let go of with the rest, since it keeps the run.
    mailbox: Arc<Mailbox>,
    /// What the steps have computed.
    shares: Arc<Shares>,
    outgoing: AnswerBatch,
    /// Its place in the line of its sequence, where steps have to see that in its order.
    ticket: Option<Ticket>,
    /// Calls whose turn has not come.
    parked: Vec<Action<Value>>,
    /// Runs whose turn has.
    woken: Vec<Weak<Run>>,
}

/// The caller's side.
struct Request {
    model: Arc<ModelVersion>,
    terms: Terms,
    context: RequestContext,
    /// Positions of the outputs that are wanted.
    outputs: SmallVec<[usize; 4]>,
    rows: Option<u32>,
    arrived: Instant,
    started: Instant,
    chain: Option<Arc<Chain>>,
    /// Where this request is itself a step: what all steps of that ensemble have computed.
    outer: Option<Arc<Shares>>,
    /// None once the last answer was given.
    responder: Option<Responder>,
    /// Its record until then, where it is traced.
    trace: Option<Underway>,
}

/// A call that is still to be made.
struct HeldBack {
    call: usize,
    step: usize,
    inputs: Vec<Option<Value>>,
}

/// A step that was called and has not given its last answer.
struct Ongoing {
    step: usize,
    rows: Option<u32>,
    sequence: SequenceInfo,
    caller: Caller,
    /// Of an ordinary step: its first answer, and how many there were.
    first: Option<Answer>,
    answers: u32,
    /// That the ensemble's caller waits for it.
    _wait: Option<Wait>,
    /// Its room, where the step has not room for any number of calls.
    _permit: Option<Permit>,
}

impl RunDriver {
    /// Takes a request on; `advance` begins.
    pub fn start(
        ensemble: &Arc<Ensemble>,
        model: &Arc<ModelVersion>,
        pending: Pending,
        itself: &Arc<Run>,
    ) -> RunDriver {
        let (request, inputs) = Request::new(model, pending);
        let members = ensemble.members();
        let mut actions = Vec::new();
        let run = EnsembleRun::start(&ensemble.graph, &request.outputs, inputs, &mut actions);
        let mut driver = RunDriver {
            ensemble: Arc::clone(ensemble),
            members: Members::new(),
            request,
            run,
            actions,
            calls: Vec::new(),
            held_back: Vec::new(),
            itself: Arc::downgrade(itself),
            untaken: VecDeque::new(),
            mailbox: Mailbox::read_by(Arc::clone(itself) as Arc<dyn Reader>),
            shares: Arc::default(),
            outgoing: AnswerBatch::default(),
            ticket: None,
            parked: Vec::new(),
            woken: Vec::new(),
        };
        match members {
            Ok(members) => {
                if let Some(parts) = fused::parts_of(&members) {
                    ensemble.fusing.look(ensemble, model, &parts);
                }
                driver.ticket = ensemble.join(&members, &driver.request.context.sequence);
                driver.members = members;
            }
            Err(error) => driver.fail(error),
        }
        driver
    }

    /// Whether the caller has its last response.
    pub fn is_over(&self) -> bool {
        self.request.responder.is_none()
    }

    /// Takes note of what happened; `advance` does what follows from it.
    pub fn handle(&mut self, event: Event) {
        if self.is_over() {
            return;
        }
        match event {
            Event::Response(response) => self.answered(response),
            Event::Consumed(responses) => {
                for _ in 0..responses {
                    let Some(response) = self.untaken.pop_front() else { break };
                    self.run.consumed(response, &mut self.actions);
                }
            }
            Event::Admitted { call, permit } => {
                let Some(place) = self.held_back.iter().position(|held| held.call == call) else { return };
                let HeldBack { call, step, inputs } = self.held_back.swap_remove(place);
                self.begin(call, step, inputs, Some(permit));
            }
            Event::Cancelled => self.withdraw(),
            Event::Turn => self.actions.append(&mut self.parked),
        }
    }

    /// Does what is to be done.
    pub fn advance(&mut self) {
        let mut actions = mem::take(&mut self.actions);
        for action in actions.drain(..) {
            if self.is_over() {
                break;
            }
            match action {
                Action::Call { call, step, inputs } => self.call(call, step, inputs),
                Action::Respond { response, outputs, last } => self.respond(response, outputs, last),
                Action::Release { call, weight } => {
                    if let Some(Some(ongoing)) = self.calls.get(call) {
                        ongoing.caller.consumed(1, weight);
                    }
                }
                Action::End => self.end(None),
                Action::Deadlock => self.fail(deadlock(&self.request.terms.id)),
            }
        }
        self.actions = actions;
        self.outgoing.send();
        if !self.woken.is_empty() {
            run::wake(self.woken.drain(..).filter_map(|run| run.upgrade()));
        }
    }

    /// Calls a step, once it is this request's turn and as soon as there is room for it.
    fn call(&mut self, call: usize, step: usize, inputs: Vec<Option<Value>>) {
        if !self.may_call(step) {
            return self.parked.push(Action::Call { call, step, inputs });
        }
        let permit = match &self.ensemble.steps[step].semaphore {
            None => None,
            Some(semaphore) => match semaphore.acquire(&self.itself, call, alipes_clock::now()) {
                Ok(permit) => Some(permit),
                Err(deadline) => {
                    self.held_back.push(HeldBack { call, step, inputs });
                    return alarm::set(&self.request.model, deadline);
                }
            },
        };
        self.begin(call, step, inputs, permit);
    }

    fn begin(&mut self, call: usize, step: usize, inputs: Vec<Option<Value>>, permit: Option<Permit>) {
        let submitted = self.submit(call, step, inputs, permit);
        self.pass_turn(step);
        match submitted {
            Ok(ongoing) => {
                if self.calls.len() <= call {
                    self.calls.resize_with(call + 1, || None);
                }
                self.calls[call] = Some(ongoing);
            }
            Err(error) => self.fail(error),
        }
    }

    /// Whether it is the turn of this request at a step; else it is woken when it is.
    fn may_call(&self, number: usize) -> bool {
        let Some((ticket, step)) = self.turn(number) else { return true };
        self.ensemble.step_order.lock().may_call(ticket, step, || Weak::clone(&self.itself))
    }

    /// The next request of the sequence may call a step. What a decoupled ensemble may call again is passed at its end.
    fn pass_turn(&mut self, number: usize) {
        if !self.ensemble.graph.is_decoupled()
            && let Some((ticket, step)) = self.turn(number)
        {
            let next = self.ensemble.step_order.lock().pass(ticket, step);
            self.woken.extend(next);
        }
    }

    /// Where the requests of a sequence have to call a step in their order: the place in their line, and the step's.
    fn turn(&self, number: usize) -> Option<(&Ticket, usize)> {
        let (ticket, step) = (self.ticket.as_ref()?, self.ensemble.later[number]?);
        self.members[self.ensemble.steps[number].member].keeps_state().then_some((ticket, step))
    }

    fn leave_line(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.ensemble.step_order.lock().leave(ticket, &mut self.woken);
        }
    }

    fn submit(
        &self,
        call: usize,
        number: usize,
        inputs: Vec<Option<Value>>,
        permit: Option<Permit>,
    ) -> Result<Ongoing, InferError> {
        let step = &self.ensemble.steps[number];
        let member = &self.members[step.member];
        if member.is_decoupled() != step.decoupled {
            return Err(changed(&member.name));
        }
        let (chain, wait) = self.begin_wait(member)?;
        let Prepared { mut request, rows, sequence } =
            step::prepare(step, member, &self.request.terms, &self.request.context, inputs);
        request.trace = self.request.trace.as_ref().map(|trace| trace.child());
        let arrival = Arrival { at: alipes_clock::now(), chain, shares: Some(Arc::clone(&self.shares)) };
        let caller = member.submit(request, arrival, || Responder::into_mailbox(&self.mailbox, call as u64))?;
        Ok(Ongoing { step: number, rows, sequence, caller, first: None, answers: 0, _wait: wait, _permit: permit })
    }

    /// Where a model has called the ensemble, it is that model that waits for a step.
    fn begin_wait(&self, member: &Arc<ModelVersion>) -> Result<(Option<Arc<Chain>>, Option<Wait>), InferError> {
        let Some(chain) = &self.request.chain else { return Ok((None, None)) };
        let context = self.ensemble.context.upgrade();
        let wait = context.map_or(Ok(None), |context| context.waits.begin(chain, Arc::clone(member) as _))?;
        Ok((Some(Arc::clone(chain).waiting(wait.as_ref().map(Wait::id))), wait))
    }

    /// A step has given an answer, or ended.
    fn answered(&mut self, response: Response) {
        let Ok(call) = usize::try_from(response.tag) else { return };
        let Some(Some(ongoing)) = self.calls.get_mut(call) else { return };
        if self.ensemble.steps[ongoing.step].decoupled {
            if let Some(answer) = response.answer {
                self.go_on(call, answer);
            }
        } else {
            ongoing.answers += u32::from(response.answer.is_some());
            ongoing.first = ongoing.first.take().or(response.answer);
            if response.last {
                self.ended(call);
            }
        }
        if response.last && !self.is_over() {
            self.calls[call] = None;
            self.run.end(call, &mut self.actions);
        }
    }

    /// An ordinary step has given all that it gives, which should be one answer.
    fn ended(&mut self, call: usize) {
        let Some(Some(ongoing)) = self.calls.get_mut(call) else { return };
        match (ongoing.first.take(), ongoing.answers) {
            (Some(answer), 1) => self.go_on(call, answer),
            (None, _) => {}
            (_, answers) => self.fail(InferError::internal(format!("expected a single response, got {answers}"))),
        }
    }

    fn go_on(&mut self, call: usize, answer: Answer) {
        let Some(Some(ongoing)) = self.calls.get(call) else { return };
        let step = &self.ensemble.steps[ongoing.step];
        let read = answer.and_then(|reply| {
            let weight = reply.bytes();
            step::values(step, reply, ongoing.rows, &ongoing.sequence).map(|values| (values, weight))
        });
        match read {
            Ok((values, weight)) => self.run.respond(call, values, weight, &mut self.actions),
            Err(error) => self.fail(error),
        }
    }

    fn respond(&mut self, response: usize, outputs: Vec<Option<Value>>, last: bool) {
        let reply = self.request.reply(outputs);
        if last {
            return self.end(Some(reply));
        }
        if let Some(responder) = &mut self.request.responder {
            if let Some(trace) = &self.request.trace {
                trace.note_response(clock::now_ns());
            }
            self.untaken.push_back(response);
            self.outgoing.respond(responder, Ok(reply));
        }
    }

    /// The request has been answered to the end.
    fn end(&mut self, reply: Option<Reply>) {
        let Some(responder) = self.request.responder.take() else { return };
        self.leave_line();
        // Recorded before the answer leaves, so that statistics read after it include it.
        self.request.record(&self.shares);
        self.request.note_end(reply.is_some(), reply.as_ref());
        match reply {
            Some(reply) => self.outgoing.add(responder, Ok(reply)),
            None => self.outgoing.finish(responder),
        }
    }

    /// Tells the caller that there is no answer, and calls nothing more.
    fn fail(&mut self, error: InferError) {
        let Some(responder) = self.request.responder.take() else { return };
        self.let_go();
        let Request { model, arrived, .. } = &self.request;
        model.statistics.failed(FailureReason::Other, alipes_clock::elapsed(*arrived));
        let message = format!("in ensemble '{}', {}", model.name, error.message);
        self.request.note_end(true, None);
        self.outgoing.add(responder, Err(InferError { message, ..error }.at(Origin::Model)));
    }

    /// Cancels the steps that have not ended: their models learn that the caller has gone.
    fn let_go(&mut self) {
        self.leave_line();
        self.run.stop();
        self.held_back.clear();
        let open: SmallVec<[usize; 4]> =
            self.calls.iter().flatten().map(|ongoing| self.ensemble.steps[ongoing.step].member).collect();
        self.calls.clear();
        open.into_iter().for_each(|member| self.members[member].caller_left());
    }

    /// The caller has gone.
    fn withdraw(&mut self) {
        let Some(responder) = self.request.responder.take() else { return };
        self.let_go();
        responder.dismiss();
        drop(self.request.trace.take());
        let Request { model, arrived, .. } = &self.request;
        model.statistics.failed(FailureReason::Canceled, alipes_clock::elapsed(*arrived));
    }
}

impl Request {
    /// What is kept of a request, and its inputs in the order of the ensemble's.
    fn new(model: &Arc<ModelVersion>, pending: Pending) -> (Request, Vec<Option<Value>>) {
        let PendingRequest { checked, arrived, responder, chain, shares, trace, .. } = *pending;
        let Checked { inputs, outputs, rows, terms, context, .. } = checked;
        let rows = (model.spec.max_batch_size > 0).then_some(rows);
        let mut values: Vec<Option<Value>> = model.spec.inputs.iter().map(|_| None).collect();
        for input in inputs {
            let datatype = model.spec.inputs[input.index].datatype;
            values[input.index] = Some(Value { datatype, shape: input.shape, data: input.data, rows, sequence: None });
        }
        let request = Request {
            model: Arc::clone(model),
            terms,
            context: context.map(|context| *context).unwrap_or_default(),
            outputs,
            rows,
            arrived,
            started: alipes_clock::now(),
            chain,
            outer: shares,
            responder: Some(responder),
            trace,
        };
        (request, values)
    }

    fn reply(&self, values: Vec<Option<Value>>) -> Reply {
        let batches = self.rows.is_some();
        let mut sequence = None;
        let mut outputs = Vec::with_capacity(values.len());
        for (&position, value) in self.outputs.iter().zip(values) {
            let Some(value) = value else { continue };
            let port = &self.model.spec.outputs[position];
            let declared = port.reshape.as_deref().unwrap_or(&port.dims);
            let shape = wire_shape(port, batches, value.shape_for(declared, batches));
            sequence = sequence.or(value.sequence);
            outputs.push(Tensor { name: port.name.as_str().into(), datatype: value.datatype, shape, data: value.data });
        }
        Reply { outputs, parameters: step::parameters(sequence) }
    }

    /// Notes the end of the request, with or without an answer to it, and lets go of its record.
    fn note_end(&mut self, answered: bool, reply: Option<&Reply>) {
        let Some(trace) = self.trace.take() else { return };
        let now = clock::now_ns();
        if answered {
            trace.note_response(now);
        }
        trace.note(Moment::RequestEnd, now);
        trace.note_tensors(Side::BackendOutput, reply.into_iter().flat_map(|reply| &reply.outputs));
    }

    /// Source: Triton counts a request to an ensemble as one execution, and adds up what its steps have computed.
    fn record(&self, shares: &Shares) {
        let times = shares.total();
        let rows = self.rows.unwrap_or(1).max(1);
        let queued = self.started.saturating_duration_since(self.arrived);
        let execution = Execution { batch_size: rows, rows, requests: 1, times };
        self.model.statistics.executed(&execution, [queued], [alipes_clock::elapsed(self.arrived)]);
        if let Some(outer) = &self.outer {
            outer.add(&times);
        }
    }
}

fn deadlock(id: &str) -> InferError {
    let id = if id.is_empty() { "<id_unknown>" } else { id };
    InferError::invalid(format!(
        "[request id: {id}] unexpected deadlock, at least one output is not set while no more ensemble steps can be made"
    ))
}

/// A member was loaded again since the ensemble was, and the graph no longer fits it.
fn changed(member: &str) -> InferError {
    let text = format!("model '{member}' has another transaction policy than when the ensemble was loaded");
    InferError::new(Code::Unavailable, text)
}
