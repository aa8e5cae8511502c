//! Calls to the server: inferences of other models, and everything that is asked for by name.

use std::sync::Arc;

use alipes_link::{
    OutCall, OutCallKind, OutData, OutInferCall, OutMessage, OutTensor, ReceivedMail, ReceivedOutcome, TensorName,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCFunction, PyDict, PyString, PyTuple};
use smallvec::SmallVec;

use super::arrays::Memory;
use super::errors::{of_called_model, refused};
use super::fork;
use super::iterator::ResponseIterator;
use super::lease::Loan;
use super::link::{Link, link};
use super::request::{InferenceRequest, Target, callable, check_callable, tensor};
use super::response::{InferenceResponse, Tensors};

/// The error of a call after the server has left.
const NO_ANSWER: &str = "The server does not answer calls any more.";

/// The error of a received request that is to be executed.
const RECEIVED: &str = "A received request cannot be executed, only one that a model made.";

/// The error of a call for any number of responses, in a process that was forked.
const FORKED_DECOUPLED: &str = "A process that was forked from the worker calls models for one response each: \
                                decoupled=True is for the worker's own process.";

/// Calls the model that a request names.
pub fn execute<'py>(request: &Bound<'py, InferenceRequest>, decoupled: bool) -> PyResult<Bound<'py, PyAny>> {
    if is_forked() {
        return relayed(request, decoupled);
    }
    let link = callable()?;
    execute_for(&link, request, decoupled, link.parent())
}

/// Whether the link that this thread would use is that of the process it was forked from.
fn is_forked() -> bool {
    link().is_some_and(|link| link.is_forked())
}

/// Has the worker's own process make a call of one that was forked from it.
fn relayed<'py>(request: &Bound<'py, InferenceRequest>, decoupled: bool) -> PyResult<Bound<'py, PyAny>> {
    if decoupled {
        return Err(refused(FORKED_DECOUPLED));
    }
    let (py, made) = (request.py(), request.get());
    let Target { model, version, outputs } = made.target().ok_or_else(|| refused(RECEIVED))?;
    let arguments = PyDict::new(py);
    arguments.set_item("request_id", &made.id)?;
    arguments.set_item("correlation_id", request.call_method0("correlation_id")?)?;
    arguments.set_item("inputs", request.call_method0("inputs")?)?;
    arguments.set_item("requested_output_names", outputs)?;
    arguments.set_item("model_name", model)?;
    arguments.set_item("model_version", version)?;
    arguments.set_item("flags", request.call_method0("flags")?)?;
    arguments.set_item("timeout", made.timeout_us)?;
    arguments.set_item("parameters", request.call_method0("parameters")?)?;
    py.import("alipes.worker.relay")?.call_method1("execute", (arguments,))
}

/// Calls it for the request with this ticket.
fn execute_for<'py>(
    link: &Arc<Link>,
    request: &Bound<'py, InferenceRequest>,
    decoupled: bool,
    parent: u64,
) -> PyResult<Bound<'py, PyAny>> {
    let py = request.py();
    let call = begin(link, request, decoupled, parent)?;
    if decoupled {
        return Ok(Bound::new(py, ResponseIterator::new(Arc::clone(link), call))?.into_any());
    }
    Ok(Bound::new(py, only_response(py, link, call)?)?.into_any())
}

/// Calls the model that a request names, in a thread of its own; gives a future of the running event loop.
pub fn execute_soon<'py>(request: &Bound<'py, InferenceRequest>, decoupled: bool) -> PyResult<Bound<'py, PyAny>> {
    let py = request.py();
    let event_loop = py.import("asyncio")?.call_method0("get_running_loop")?;
    if is_forked() {
        // The threads were its parent's.
        let executor = py.None();
        return event_loop.call_method1("run_in_executor", (executor, request.getattr("exec")?, decoupled));
    }
    let link = callable()?;
    // Read here: when a thread comes to it, the execution may be over and another one under way.
    let (parent, called) = (link.parent(), request.clone().unbind());
    let call = move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
        let request = called.bind(arguments.py());
        check_callable(&link)?;
        execute_for(&link, request, decoupled, parent).map(Bound::unbind)
    };
    let call = PyCFunction::new_closure(py, None, None, call)?;
    event_loop.call_method1("run_in_executor", (threads(py)?, call))
}

/// Most calls of one process that wait in `async_exec` at once; further ones wait for a thread.
const MAX_THREADS: usize = 128;

/// The threads that wait for answers. The event loop's own are left to the model, whose tasks these would starve.
fn threads(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static THREADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let threads = THREADS.get_or_try_init(py, || {
        let class = py.import("concurrent.futures")?.getattr("ThreadPoolExecutor")?;
        let named = PyDict::new(py);
        named.set_item("max_workers", MAX_THREADS)?;
        named.set_item("thread_name_prefix", "alipes-call")?;
        Ok::<_, PyErr>(class.call((), Some(&named))?.unbind())
    })?;
    Ok(threads.bind(py))
}

/// Sends the call; its number stands for its answers.
fn begin(link: &Link, request: &Bound<'_, InferenceRequest>, decoupled: bool, parent: u64) -> PyResult<u64> {
    let (py, request) = (request.py(), request.get());
    let target = request.target().ok_or_else(|| refused(RECEIVED))?;
    let tensors = request.tensors(py)?;
    let inputs: PyResult<SmallVec<[(String, Memory); 2]>> = tensors
        .iter()
        .map(|tensor| {
            let tensor = tensor.get();
            Ok((tensor.label(py).to_str()?.to_owned(), tensor.memory(py)?))
        })
        .collect();
    let (inputs, trace) = (inputs?, request.traced(py)?.get());
    let parent = if trace.ticket == 0 { parent } else { trace.ticket };
    let flags = request.flags.load(std::sync::atomic::Ordering::Relaxed);
    let id = link.mailbox.open();
    let Target { model, version, outputs } = target;
    let bytes = inputs.iter().map(|(_, memory)| memory.bytes as u64).sum();
    let sent = {
        let infer = OutInferCall {
            model,
            version: *version,
            id: &request.id,
            correlation_id: &request.correlation_id,
            flags,
            timeout_us: request.timeout_us,
            priority: 0,
            parameters: &request.parameters,
            outputs: outputs.iter().map(String::as_str).collect(),
            inputs: inputs.iter().map(|(name, memory)| input(name, memory)).collect(),
            decoupled,
            trace: trace.context.as_deref(),
        };
        let call = OutCall { id, parent, kind: OutCallKind::Infer(infer) };
        link.send(py, &OutMessage::Call(&call), bytes)
    };
    sent.map_err(|text| {
        link.mailbox.close(link, id);
        refused(text)
    })?;
    Ok(id)
}

fn input<'a>(name: &'a str, memory: &'a Memory) -> OutTensor<'a> {
    // SAFETY: the request holds its tensors, and they their memory; the caller holds the request.
    let bytes = unsafe { std::slice::from_raw_parts(memory.data.as_ptr(), memory.bytes) };
    let (datatype, shape) = (memory.datatype, memory.shape.clone());
    OutTensor { name: TensorName::Name(name), datatype, shape, data: OutData::Bytes(bytes) }
}

/// The response of a model that gives one. An end without a response counts only where nothing came before it.
fn only_response(py: Python<'_>, link: &Arc<Link>, call: u64) -> PyResult<InferenceResponse> {
    let mut response = None;
    loop {
        let Some(mail) = py.detach(|| link.mailbox.next(link, call)) else {
            link.mailbox.close(link, call);
            return Err(refused(NO_ANSWER));
        };
        let last = mail.last;
        let received = received(py, link, mail, true);
        if last {
            link.mailbox.close(link, call);
            return response.map_or(received, Ok);
        }
        response.get_or_insert(received?);
    }
}

/// The next response of a call: it, and whether it is the last. `None` where none will come. `may_borrow` is asked with
/// the bytes of the response whether its tensors may lie in memory that the server lends; else they are copied.
pub fn next_response(
    py: Python<'_>,
    link: &Arc<Link>,
    call: u64,
    may_borrow: impl FnOnce(usize) -> bool,
) -> Option<PyResult<(InferenceResponse, bool)>> {
    if link.is_forked() {
        return Some(Err(refused(fork::NOT_OURS)));
    }
    let mail = py.detach(|| link.mailbox.next(link, call))?;
    let (last, borrowed) = (mail.last, may_borrow(viewed_bytes(&mail)));
    Some(received(py, link, mail, borrowed).map(|response| (response, last)))
}

fn received(py: Python<'_>, link: &Arc<Link>, mail: ReceivedMail, borrowed: bool) -> PyResult<InferenceResponse> {
    // A callee with more to say goes on when its response is taken.
    let unhurried = mail.last && viewed_bytes(&mail) <= UNHURRIED_BYTES;
    let loan = Loan::of_mail(link, mail.lease, unhurried);
    let lease = Py::new(py, loan.only_lease())?.into_any();
    match mail.outcome {
        ReceivedOutcome::Response { outputs, parameters, .. } => {
            let tensors = outputs.iter().map(|view| {
                let tensor = tensor(py, link, view, lease.clone_ref(py))?;
                Py::new(py, if borrowed { tensor } else { tensor.copied(py)? })
            });
            Ok(InferenceResponse::received(tensors.collect::<PyResult<Tensors>>()?, parameters))
        }
        ReceivedOutcome::Error { code, text } => {
            let error = of_called_model(PyString::new(py, &text).unbind(), code);
            Ok(InferenceResponse::failed(Py::new(py, error)?))
        }
        ReceivedOutcome::Empty => Ok(InferenceResponse::received(Tensors::new(), String::new())),
        ReceivedOutcome::Json(_) => Err(refused("The server answered a call of a model with a document.")),
    }
}

/// Most bytes of an answer whose memory may come back late, with the answers to the requests that are being executed.
const UNHURRIED_BYTES: usize = 64 << 10;

fn viewed_bytes(mail: &ReceivedMail) -> usize {
    match &mail.outcome {
        ReceivedOutcome::Response { outputs, .. } => outputs.iter().map(|view| view.len).sum(),
        _ => 0,
    }
}

/// Asks the server for something by name and waits for its answer.
pub fn control(py: Python<'_>, link: &Link, name: &str, json: &str) -> PyResult<String> {
    if link.is_forked() {
        return Err(refused(fork::NOT_OURS));
    }
    let id = link.mailbox.open();
    let call = OutCall { id, parent: link.parent(), kind: OutCallKind::Control { name, json } };
    let sent = link.send(py, &OutMessage::Call(&call), 0);
    let mail = sent.map(|()| py.detach(|| link.mailbox.next(link, id)));
    link.mailbox.close(link, id);
    let mail = mail.map_err(refused)?.ok_or_else(|| refused(NO_ANSWER))?;
    link.release(mail.lease);
    match mail.outcome {
        ReceivedOutcome::Json(text) => Ok(text),
        ReceivedOutcome::Error { text, .. } => Err(refused(text)),
        ReceivedOutcome::Empty | ReceivedOutcome::Response { .. } => Ok(String::new()),
    }
}
