//! Calls that a worker makes while it executes: inferences of other models, control, metrics.
//!
//! Each call is a task on a network thread. It ends with its last answer, when the worker no longer wants it, or with
//! the worker.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use alipes_link::{Call, CallKind, InferCall, Mail, MailOutcome, OwnedTensorName, TensorName, TensorRef};
use alipes_protocol::{Code, InferError, InferRequest, Parameter, RequestedOutput, SequenceInfo, Tensor};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

use super::chain::Chain;
use super::control;
use super::worker::Worker;
use crate::executor::answer::Answer;
use crate::handlers::Service;
use crate::model::ModelVersion;

/// Most answers to one call that the caller may leave unread; a decoupled callee waits then.
const UNREAD_ANSWERS: usize = 64;

/// The calls of a worker that are not over.
#[derive(Default)]
pub struct Calls(Mutex<HashMap<u64, AbortHandle>>);

/// What a call needs from the request that is being executed, taken while that is certain to be there.
struct Parent {
    chain: Arc<Chain>,
    inputs: Vec<Tensor>,
}

/// Starts to answer a call.
pub fn start(worker: &Arc<Worker>, model: &Arc<ModelVersion>, call: Call) {
    let Some(service) = worker.service.upgrade() else { return };
    let Some(handle) = Handle::try_current().ok().or_else(|| service.reactors.pick().cloned()) else { return };
    let (id, answering) = (call.id, Arc::clone(worker));
    let task = match call.kind {
        CallKind::Infer(mut infer) => match parent(worker, model, call.parent, &mut infer) {
            Ok(parent) => handle.spawn(async move {
                infer_call(&answering, &service, id, *infer, parent).await;
                answering.calls.0.lock().remove(&id);
            }),
            Err(violation) => return worker.damage.report(violation),
        },
        CallKind::Control { name, json } => handle.spawn(async move {
            let outcome = control::answer(&service, answering.owner(), &name, &json).await;
            let outcome = match &outcome {
                Ok(text) => MailOutcome::Json(text),
                Err(error) => MailOutcome::Error { code: number(error.code), text: &error.message },
            };
            post(&answering, id, true, outcome, None);
            answering.calls.0.lock().remove(&id);
        }),
    };
    let mut calls = worker.calls.0.lock();
    if !task.is_finished() {
        calls.insert(id, task.abort_handle());
    }
}

/// The worker no longer wants the answer: the callee is told so.
pub fn cancel(worker: &Arc<Worker>, id: u64) {
    if let Some(task) = worker.calls.0.lock().remove(&id) {
        task.abort();
    }
}

/// The worker has ended: its calls are withdrawn.
pub fn abandon(worker: &Arc<Worker>) {
    let calls = std::mem::take(&mut *worker.calls.0.lock());
    calls.into_values().for_each(|task| task.abort());
    if let Some(service) = worker.service.upgrade() {
        service.metrics.release_all(worker.owner());
    }
}

fn parent(
    worker: &Arc<Worker>,
    model: &Arc<ModelVersion>,
    ticket: u64,
    call: &mut InferCall,
) -> Result<Parent, String> {
    let state = worker.state.lock();
    let request = state.lanes.find(ticket);
    let caller = request.as_ref().and_then(|request| request.chain.clone());
    let placed = request.and_then(|request| request.placed.as_ref());
    let inputs = std::mem::take(&mut call.inputs).into_iter().map(|input| {
        let data = super::receive::bytes(&input, placed)?;
        let name = match input.name {
            OwnedTensorName::Name(name) => name.into(),
            OwnedTensorName::Index(_) => return Err("it called with an input without a name".to_owned()),
        };
        Ok(Tensor { name, datatype: input.datatype, shape: input.shape, data })
    });
    let inputs = inputs.collect::<Result<_, _>>()?;
    Ok(Parent { chain: Chain::new(model, caller), inputs })
}

/// Runs a call and posts its answers.
async fn infer_call(worker: &Arc<Worker>, service: &Service, id: u64, call: InferCall, parent: Parent) {
    let decoupled = call.decoupled;
    let request_id = call.id.clone();
    let mut responses = match submit(service, call, parent) {
        Ok(responses) => responses,
        Err(text) => return post(worker, id, true, MailOutcome::Error { code: INTERNAL, text: &text }, None),
    };
    let unread = Arc::new(Semaphore::new(UNREAD_ANSWERS));
    let mut answered = false;
    while let Some(response) = responses.next().await {
        // A plain call takes the one answer; the end that follows it is not told.
        let last = response.last || !decoupled;
        if !answered || decoupled {
            let permit = Arc::clone(&unread).acquire_owned().await.ok();
            post_answer(worker, id, last, &request_id, response.answer, permit);
        }
        answered = true;
        if response.last {
            return;
        }
    }
    if !answered || decoupled {
        let text = "the model dropped the request without an answer";
        post(worker, id, true, MailOutcome::Error { code: INTERNAL, text }, None);
    }
}

/// Hands the call to its model.
///
/// The texts are those of Triton's Python backend: whatever is refused carries the model's name in front, and the code
/// is always INTERNAL.
fn submit(service: &Service, call: InferCall, parent: Parent) -> Result<crate::executor::mailbox::Responses, String> {
    let name = call.model.clone();
    let refused = |text: String| format!("Model {name} - Error when running inference: {text}");
    let version = if call.version > 0 { call.version.to_string() } else { String::new() };
    let found = service.lookup(&name, &version).ok().filter(|model| model.is_ready());
    let model = found
        .ok_or_else(|| refused(format!("Failed for execute the inference request. Model '{name}' is not ready.")))?;
    if model.is_decoupled() && !call.decoupled {
        return Err(refused(format!(
            "Model {name} is using the decoupled. The current BLS request call doesn't support models using the \
             decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' calls \
             for decoupled models.'"
        )));
    }
    if let Some(cycle) = parent.chain.cycle(&model) {
        return Err(refused(format!("the call would wait for itself: {cycle}")));
    }
    let request = request(call, parent.inputs).map_err(|error| refused(error.message))?;
    model.submit_call(request, Instant::now(), Some(parent.chain)).map_err(|error| refused(error.message))
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

/// Triton's number for an error inside a call, whatever the callee said.
const INTERNAL: u8 = 1;

fn number(code: Code) -> u8 {
    (0..8).find(|&number| super::receive::code(number) == code).unwrap_or(INTERNAL)
}

fn post_answer(
    worker: &Arc<Worker>,
    call: u64,
    last: bool,
    id: &str,
    answer: Option<Answer>,
    permit: Option<OwnedSemaphorePermit>,
) {
    match answer {
        None => post(worker, call, last, MailOutcome::Empty, permit),
        Some(Err(error)) => {
            post(worker, call, last, MailOutcome::Error { code: INTERNAL, text: &error.message }, permit);
        }
        Some(Ok(reply)) => {
            let outputs: Vec<TensorRef<'_>> = reply.outputs.iter().map(tensor_ref).collect();
            let parameters = super::place::parameters_json(&reply.parameters);
            let outcome = MailOutcome::Response { id, outputs: &outputs, parameters: &parameters };
            post(worker, call, last, outcome, permit);
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

/// Writes an answer where the worker sees it, and keeps it there until the worker has let go of it.
fn post(worker: &Worker, call: u64, last: bool, outcome: MailOutcome<'_>, permit: Option<OwnedSemaphorePermit>) {
    let lease = worker.tickets.next();
    let mail = worker.arena.write_mail(&Mail { call, lease, last, outcome }).or_else(|| {
        let text = "the answer does not fit into the shared memory of the model";
        worker.arena.write_mail(&Mail { call, lease, last: true, outcome: MailOutcome::Error { code: INTERNAL, text } })
    });
    let Some(mail) = mail else { return };
    let mut state = worker.state.lock();
    if state.link.is_some() {
        state.held.keep(lease, mail, permit);
        state.mail.push_back(lease);
        state.post_mail();
    }
}
