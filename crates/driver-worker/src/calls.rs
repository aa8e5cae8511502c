//! Calls that a worker makes while it executes: inferences of other models, control, metrics.
//!
//! A call ends with its last answer, when the worker no longer wants it, or with the worker.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use alipes_link::{Call, CallKind, InferCall, Mail, MailOutcome, OwnedTensorName, TensorName, TensorRef};
use alipes_protocol::trace::Trace;
use alipes_protocol::{Code, InferError, InferRequest, Parameter, RequestedOutput, SequenceInfo, Tensor};
use alipes_request::chain::{Chain, WaitId};
use alipes_request::mailbox::{Caller, Mailbox, Reader, Response};
use alipes_request::responder::{Answer, Responder};
use alipes_runtime::context::Context;
use alipes_runtime::model::waiting::Wait;
use alipes_runtime::model::{Arrival, ModelVersion};
use alipes_stats::turn::{Task, timed};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::control;
use super::request_slots::InFlight;
use super::worker::{Worker, wait_of};

/// The calls of a worker that are not over.
#[derive(Default)]
pub struct Calls(Mutex<HashMap<CallId, OpenCall>>);

/// Which call of a worker. Each of its processes counts its own from the start again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId {
    /// Which of the worker's processes has called.
    pub life: u64,
    /// Number that the process gave the call.
    pub number: u64,
}

/// A call that is not over. Dropping it withdraws the call.
enum OpenCall {
    Inference(OpenInference),
    #[expect(dead_code, reason = "held for what its drop does")]
    Control(Aborting),
}

/// How the worker ends a call before its last answer.
#[derive(Clone, Copy)]
pub enum EndOfCall {
    /// It still takes the answers, up to the last.
    Cancelled,
    /// It takes none.
    Dropped,
}

/// An inference that is not over, and where its answers go.
struct OpenInference {
    caller: Arc<Caller>,
    // Not kept alive: a model that is unloaded waits for nobody who only calls it.
    callee: Weak<ModelVersion>,
    answers: Arc<Answers>,
}

impl Drop for OpenInference {
    fn drop(&mut self) {
        self.answers.end_wait();
    }
}

/// Ends a task with itself.
struct Aborting(AbortHandle);

impl Drop for Aborting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Tells the callee, once dropped, that the caller has let go of a response, so that more may be sent.
pub struct Receipt {
    // Not kept alive: a call that was withdrawn is over, even while the worker still holds its responses.
    caller: Weak<Caller>,
    bytes: u64,
}

impl Drop for Receipt {
    fn drop(&mut self) {
        if let Some(caller) = self.caller.upgrade() {
            caller.consumed(1, self.bytes);
        }
    }
}

/// What a call needs from the request that is being executed, taken while that is certain to be there.
struct Parent {
    chain: Arc<Chain>,
    inputs: Vec<Tensor>,
    trace: Option<Arc<Trace>>,
}

/// Starts to answer a call that came from this life of the worker.
pub fn start(worker: &Arc<Worker>, model: &Arc<ModelVersion>, life: u64, call: Call) {
    let Some(context) = worker.context.upgrade() else { return };
    let id = CallId { life, number: call.id };
    match call.kind {
        CallKind::Infer(mut infer) => match parent(worker, model, call.parent, &mut infer) {
            Ok(parent) => infer_call(worker, &context, id, *infer, parent),
            Err(violation) => worker.damage.report(violation),
        },
        CallKind::Control { name, json } => control_call(worker, context, id, name, json),
    }
    // Its process may have ended, and its calls been withdrawn, before this one was among them.
    if worker.state.lock().life != life {
        remove(worker, id);
    }
}

/// Answers a call of a worker whose model is gone: metrics still are, inferences are over.
pub fn start_last(worker: &Arc<Worker>, life: u64, call: Call) {
    let Some(context) = worker.context.upgrade() else { return };
    let id = CallId { life, number: call.id };
    match call.kind {
        CallKind::Infer(_) => {
            let text = "the model that calls is being unloaded";
            post(worker, id, true, MailOutcome::Error { code: Code::Unavailable as u8, text }, None);
        }
        CallKind::Control { name, json } => control_call(worker, context, id, name, json),
    }
}

/// The worker wants a call to end before its last answer. One that waits leaves the queue of its model.
pub fn end(worker: &Worker, id: CallId, end: EndOfCall) {
    let calls = worker.calls.0.lock();
    let Some(OpenCall::Inference(call)) = calls.get(&id) else {
        drop(calls);
        return remove(worker, id);
    };
    let (caller, callee) = (Arc::clone(&call.caller), Weak::clone(&call.callee));
    drop(calls);
    match end {
        EndOfCall::Cancelled => caller.cancel(),
        EndOfCall::Dropped => remove(worker, id),
    }
    drop(caller);
    if let Some(callee) = callee.upgrade() {
        callee.caller_left();
    }
}

/// A call is over, or is withdrawn with this.
fn remove(worker: &Worker, id: CallId) {
    let call = worker.calls.0.lock().remove(&id);
    drop(call);
}

/// The worker has ended: its calls are withdrawn.
pub fn abandon(worker: &Worker) {
    let calls = std::mem::take(&mut *worker.calls.0.lock());
    drop(calls);
    if let Some(context) = worker.context.upgrade() {
        context.metrics.release_all(worker.owner());
    }
}

fn control_call(worker: &Arc<Worker>, context: Arc<Context>, id: CallId, name: String, json: String) {
    let Some(handle) = Handle::try_current().ok().or_else(|| context.reactors.pick().cloned()) else { return };
    let answering = Arc::clone(worker);
    let answer = async move {
        let outcome = control::answer(&context, answering.owner(), &name, json).await;
        let outcome = match &outcome {
            Ok(text) => MailOutcome::Json(text),
            Err(error) => MailOutcome::Error { code: error.code as u8, text: &error.message },
        };
        post(&answering, id, true, outcome, None);
        // Nothing is aborted any more: this is the task's last step.
        remove(&answering, id);
    };
    let task = handle.spawn(timed(Task::WorkerCall, answer));
    worker.calls.0.lock().insert(id, OpenCall::Control(Aborting(task.abort_handle())));
    if task.is_finished() {
        remove(worker, id);
    }
}

fn parent(
    worker: &Arc<Worker>,
    model: &Arc<ModelVersion>,
    ticket: u64,
    call: &mut InferCall,
) -> Result<Parent, String> {
    let mut state = worker.state.lock();
    let executes = state.executes();
    let request = state.slots.find(ticket);
    let chain = chain(worker, model, request, executes);
    // A call is traced where the model hands the trace on, as in Triton.
    let trace = request.as_ref().and_then(|request| request.trace.as_ref()).filter(|_| call.trace.is_some());
    let trace = trace.map(|trace| trace.child());
    let placed = request.and_then(|request| request.placed.as_ref());
    let inputs = std::mem::take(&mut call.inputs).into_iter().map(|input| {
        let data = super::frames::bytes(&input, placed)?;
        let name = match input.name {
            OwnedTensorName::Name(name) => name.into(),
            OwnedTensorName::Index(_) => return Err("it called with an input without a name".to_owned()),
        };
        Ok(Tensor { name, datatype: input.datatype, shape: input.shape, data })
    });
    let inputs = inputs.collect::<Result<_, _>>()?;
    Ok(Parent { chain, inputs, trace })
}

/// Who waits for a call that is made for a request: while that is executed, the worker.
fn chain(worker: &Worker, model: &ModelVersion, request: Option<&InFlight>, executes: Vec<WaitId>) -> Arc<Chain> {
    let Some(request) = request else { return Chain::new(&model.name, None, None, Vec::new()) };
    let (ticket, executes) = match request.executed {
        false => (0, executes),
        true => (request.ticket, wait_of(request).into_iter().collect()),
    };
    Chain::new(&model.name, request.chain.clone(), Some(worker.holder(ticket)), executes)
}

/// Hands a call to its model. The thread that brings an answer also sends it: nothing waits in between.
fn infer_call(worker: &Arc<Worker>, context: &Context, id: CallId, call: InferCall, parent: Parent) {
    let answers = Arc::new(Answers {
        worker: Arc::downgrade(worker),
        call: id,
        request_id: call.id.clone(),
        decoupled: call.decoupled,
        over: AtomicBool::new(false),
        caller: Mutex::default(),
        wait: Mutex::default(),
    });
    match submit(context, call, parent, &answers) {
        Ok((callee, caller)) => {
            let caller = Arc::new(caller);
            let open = OpenInference { caller: Arc::clone(&caller), callee, answers: Arc::clone(&answers) };
            worker.calls.0.lock().insert(id, OpenCall::Inference(open));
            answers.known(caller);
            // The last answer may have come before the call stood here.
            if answers.over.load(Ordering::SeqCst) {
                remove(worker, id);
            }
        }
        Err(error) => {
            answers.end_wait();
            post(worker, id, true, MailOutcome::Error { code: error.code as u8, text: &error.message }, None);
        }
    }
}

/// Where the answers to one call go.
struct Answers {
    worker: Weak<Worker>,
    call: CallId,
    request_id: String,
    decoupled: bool,
    over: AtomicBool,
    caller: Mutex<Known>,
    wait: Mutex<Option<Wait>>,
}

/// The way back to the callee, which may answer before it is known.
#[derive(Default)]
struct Known {
    caller: Option<Weak<Caller>>,
    early_responses: u32,
    early_bytes: u64,
}

impl Reader for Answers {
    fn take(&self, response: Response) {
        let Some(worker) = self.worker.upgrade() else { return };
        // A plain call takes the one answer; the end that follows it is not sent.
        let last = response.last || !self.decoupled;
        if self.over.load(Ordering::SeqCst) {
            return;
        }
        if last {
            self.end_wait();
        }
        let receipt = if last { None } else { self.receipt(response.answer.as_ref()) };
        post_answer(&worker, self.call, last, &self.request_id, response.answer, receipt);
        if last {
            self.over.store(true, Ordering::SeqCst);
            remove(&worker, self.call);
        }
    }
}

impl Answers {
    /// The worker does not wait any more.
    fn end_wait(&self) {
        let wait = self.wait.lock().take();
        drop(wait);
    }

    fn receipt(&self, answer: Option<&Answer>) -> Option<Receipt> {
        let bytes = answer.and_then(|answer| answer.as_ref().ok()).map_or(0, |reply| reply.bytes());
        let mut known = self.caller.lock();
        let Some(caller) = &known.caller else {
            known.early_responses += 1;
            known.early_bytes += bytes;
            return None;
        };
        Some(Receipt { caller: Weak::clone(caller), bytes })
    }

    /// The way back is known; responses that came before count as taken.
    fn known(&self, caller: Arc<Caller>) {
        let mut known = self.caller.lock();
        known.caller = Some(Arc::downgrade(&caller));
        let early = (known.early_responses, known.early_bytes);
        drop(known);
        if early.0 > 0 {
            caller.consumed(early.0, early.1);
        }
    }
}

/// Hands the call to its model.
///
/// The texts are those of Triton's Python backend: whatever is refused carries the model's name in front. The code is
/// that of the refusal, which a `model.py` does not see.
fn submit(
    context: &Context,
    call: InferCall,
    parent: Parent,
    answers: &Arc<Answers>,
) -> Result<(Weak<ModelVersion>, Caller), InferError> {
    let name = call.model.clone();
    let text = |text: &str| format!("Model {name} - Error when running inference: {text}");
    let refused = |error: InferError| InferError { message: text(&error.message), ..error };
    let version = if call.version > 0 { call.version.to_string() } else { String::new() };
    let unready =
        |code| InferError::new(code, format!("Failed for execute the inference request. Model '{name}' is not ready."));
    let model = match context.registry.find(&name, &version) {
        Ok(model) if model.is_ready() => model,
        Ok(_) => return Err(refused(unready(Code::Unavailable))),
        // Since 2.73 the text says what was looked for.
        Err(error) if context.config.triton_release.is_later() => return Err(refused(error)),
        Err(error) => return Err(refused(unready(error.code))),
    };
    if model.is_decoupled() && !call.decoupled {
        return Err(InferError::invalid(text(&format!(
            "Model {name} is using the decoupled. The current BLS request call doesn't support models using the \
             decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' calls \
             for decoupled models.'"
        ))));
    }
    let request = request(call, parent.inputs).map_err(refused)?;
    let request = InferRequest { trace: parent.trace, ..request };
    let wait = context.waits.begin(&parent.chain, Arc::clone(&model) as _).map_err(refused)?;
    let chain = parent.chain.waiting(wait.as_ref().map(Wait::id));
    *answers.wait.lock() = wait;
    let arrival = Arrival { at: alipes_clock::now(), chain: Some(chain), shares: None };
    let respond = || Responder::into_mailbox(&Mailbox::read_by(Arc::clone(answers) as Arc<dyn Reader>), 0);
    let caller = model.submit(request, arrival, respond).map_err(refused)?;
    Ok((Arc::downgrade(&model), caller))
}

fn request(call: InferCall, inputs: Vec<Tensor>) -> Result<InferRequest, InferError> {
    Ok(InferRequest {
        id: call.id.into(),
        inputs,
        outputs: call
            .outputs
            .into_iter()
            .map(|name| RequestedOutput { name: name.into(), ..Default::default() })
            .collect(),
        parameters: parameters(&call.parameters)?,
        sequence: SequenceInfo {
            correlation_id: call.correlation_id,
            start: call.flags & 1 != 0,
            end: call.flags & 2 != 0,
        },
        priority: call.priority,
        timeout_us: call.timeout_us,
        ..Default::default()
    })
}

fn parameters(json: &str) -> Result<Vec<(String, Parameter)>, InferError> {
    if json.is_empty() {
        return Ok(Vec::new());
    }
    let broken = |error: serde_json::Error| InferError::invalid(format!("parameters are no JSON object: {error}"));
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(json).map_err(broken)?;
    let parameter = |(name, value): (String, serde_json::Value)| {
        let value = match &value {
            serde_json::Value::Bool(value) => Parameter::Bool(*value),
            serde_json::Value::String(text) => Parameter::String(text.clone()),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(value) => Parameter::Int64(value),
                None => Parameter::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            _ => {
                return Err(InferError::invalid(format!("parameter '{name}' is neither text, number nor truth value")));
            }
        };
        Ok((name, value))
    };
    object.into_iter().map(parameter).collect()
}

fn post_answer(
    worker: &Arc<Worker>,
    call: CallId,
    last: bool,
    id: &str,
    answer: Option<Answer>,
    receipt: Option<Receipt>,
) {
    match answer {
        None => post(worker, call, last, MailOutcome::Empty, receipt),
        Some(Err(error)) => {
            post(worker, call, last, MailOutcome::Error { code: error.code as u8, text: &error.message }, receipt);
        }
        Some(Ok(reply)) => {
            let outputs: Vec<TensorRef<'_>> = reply.outputs.iter().map(tensor_ref).collect();
            let parameters = super::frames::parameters_json(&reply.parameters);
            let outcome = MailOutcome::Response { id, outputs: &outputs, parameters: &parameters };
            post(worker, call, last, outcome, receipt);
        }
    }
}

fn tensor_ref(tensor: &Tensor) -> TensorRef<'_> {
    TensorRef {
        name: TensorName::Name(&tensor.name),
        datatype: tensor.datatype,
        shape: &tensor.shape,
        data: &tensor.data,
    }
}

/// Writes an answer where the worker sees it, and keeps it there until the worker has let go of it. It is for the
/// process that called, not for one that was started since.
fn post(worker: &Worker, call: CallId, last: bool, outcome: MailOutcome<'_>, receipt: Option<Receipt>) {
    let lease = worker.tickets.next();
    let write = |last, outcome| worker.arena.write_mail(&Mail { call: call.number, lease, last, outcome });
    let mail = write(last, outcome).or_else(|| {
        let text = "the answer does not fit into the shared memory of the model";
        write(true, MailOutcome::Error { code: Code::Internal as u8, text })
    });
    let Some(mail) = mail else { return };
    let mut state = worker.state.lock();
    if state.life != call.life || state.link.is_none() {
        return;
    }
    state.held.keep(lease, mail, receipt);
    state.mail.push_back(lease);
    let link = state.post_mail();
    drop(state);
    if let Some(link) = link {
        link.wake_caller();
    }
}
