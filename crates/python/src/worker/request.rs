//! `InferenceRequest`: one that was received, to be answered, or one that a model makes, to call another model.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use alipes_link::{OwnedTensorName, Request, ViewedTensor};
use alipes_protocol::{CorrelationId, Parameter};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PyList, PySet, PyString};

use super::argument::{self, Argument};
use super::arrays::Memory;
use super::context::{InferenceTrace, PreferredMemory};
use super::errors::{refused, wrong_arguments};
use super::fork;
use super::link::{Link, Stage, link};
use super::missing_response::{MissingReason, MissingReasons};
use super::reply::Reply;
use super::response::{Tensors, tensors};
use super::sender::InferenceResponseSender;
use super::tensor::Tensor;
use super::{calls, parameters};

const SUPPORTED: &str = "InferenceRequest(request_id: str = '', correlation_id: object = 0, \
                         inputs: List[c_python_backend_utils.Tensor], requested_output_names: List[str], \
                         model_name: str, model_version: int = -1, flags: int = 0, timeout: int = 0, \
                         preferred_memory: c_python_backend_utils.PreferredMemory = PreferredMemory(), \
                         trace: c_python_backend_utils.InferenceTrace = InferenceTrace(), parameters: dict = None)";

/// A request.
#[pyclass(frozen, module = "c_python_backend_utils")]
pub struct InferenceRequest {
    pub id: String,
    pub correlation_id: CorrelationId,
    pub flags: AtomicU32,
    pub timeout_us: u64,
    trace: PyOnceLock<Py<InferenceTrace>>,
    /// The text of a JSON object.
    pub parameters: String,
    inputs: PyOnceLock<Tensors>,
    origin: Origin,
}

enum Origin {
    /// `context` is the trace's, until somebody asks for it.
    Received {
        reply: Arc<Reply>,
        views: Vec<ViewedTensor>,
        context: Option<String>,
    },
    Made(Target),
}

/// Whom a model calls.
pub struct Target {
    pub model: String,
    pub version: i64,
    pub outputs: Vec<String>,
}

impl InferenceRequest {
    /// A request that was claimed.
    pub fn received(link: &Arc<Link>, request: Request) -> (InferenceRequest, Arc<Reply>) {
        let reply = Reply::new(link, &request);
        let this = InferenceRequest {
            id: request.id,
            correlation_id: request.correlation_id,
            flags: AtomicU32::new(request.flags),
            timeout_us: request.timeout_us,
            trace: PyOnceLock::new(),
            parameters: request.parameters,
            inputs: PyOnceLock::new(),
            origin: Origin::Received { reply: reply.clone(), views: request.inputs, context: request.trace },
        };
        (this, reply)
    }

    /// What a received request is still owed.
    pub fn reply(&self) -> Option<&Arc<Reply>> {
        match &self.origin {
            Origin::Received { reply, .. } => Some(reply),
            Origin::Made(_) => None,
        }
    }

    /// What a received request is owed, and the views of its inputs.
    pub fn received_views(&self) -> Option<(&Arc<Reply>, &[ViewedTensor])> {
        match &self.origin {
            Origin::Received { reply, views, .. } => Some((reply, views)),
            Origin::Made(_) => None,
        }
    }

    /// Whom a made request calls.
    pub fn target(&self) -> Option<&Target> {
        match &self.origin {
            Origin::Received { .. } => None,
            Origin::Made(target) => Some(target),
        }
    }

    /// The trace that the request is part of.
    pub fn traced(&self, py: Python<'_>) -> PyResult<&Py<InferenceTrace>> {
        self.trace.get_or_try_init(py, || {
            let trace = match &self.origin {
                Origin::Received { reply, context, .. } => {
                    InferenceTrace { context: context.clone(), ticket: reply.ticket }
                }
                Origin::Made(_) => InferenceTrace::default(),
            };
            Py::new(py, trace)
        })
    }

    /// The inputs; those of a received request become objects when they are first looked at.
    pub fn tensors(&self, py: Python<'_>) -> PyResult<&Tensors> {
        self.inputs.get_or_try_init(py, || match &self.origin {
            Origin::Received { reply, views, .. } => viewed(py, reply, views),
            Origin::Made(_) => Ok(Tensors::new()),
        })
    }
}

/// Tensors over the request's memory, which they keep on loan.
fn viewed(py: Python<'_>, reply: &Arc<Reply>, views: &[ViewedTensor]) -> PyResult<Tensors> {
    let lease = reply.loan.lease().ok_or_else(|| {
        refused("The inputs of a request can be looked at only before it is answered, unless they were before.")
    })?;
    let lease = Py::new(py, lease)?.into_any();
    views.iter().map(|view| Py::new(py, tensor(py, &reply.link, view, lease.clone_ref(py))?)).collect()
}

/// A tensor over the memory of a view; `owner` keeps it.
pub fn tensor(py: Python<'_>, link: &Link, view: &ViewedTensor, owner: Py<PyAny>) -> PyResult<Tensor> {
    let name = match &view.name {
        OwnedTensorName::Index(index) => link.input_name(*index).map(|name| name.clone_ref(py)),
        OwnedTensorName::Name(name) => Some(PyString::new(py, name).unbind()),
    };
    let data = link.end.memory().at(view.offset, view.len);
    // The link has checked the range; the names are those of one build of the server.
    let (Some(name), Some(data)) = (name, data) else { return Err(refused("The server sent an unknown input.")) };
    let memory = Memory { datatype: view.datatype, shape: view.shape.clone(), data, bytes: view.len };
    Ok(Tensor::borrowed(name, memory, owner))
}

#[pymethods]
impl InferenceRequest {
    #[new]
    #[pyo3(signature = (request_id = Argument::Absent, correlation_id = Argument::Absent, inputs = Argument::Absent,
        requested_output_names = Argument::Absent, model_name = Argument::Absent, model_version = Argument::Absent,
        flags = Argument::Absent, timeout = Argument::Absent, preferred_memory = Argument::Absent,
        trace = Argument::Absent, parameters = None),
        text_signature = "(request_id='', correlation_id=0, inputs=..., requested_output_names=..., \
        model_name=..., model_version=-1, flags=0, timeout=0, preferred_memory=..., trace=..., parameters=None)")]
    #[allow(clippy::too_many_arguments, reason = "the constructor is Triton's")]
    fn new<'py>(
        py: Python<'py>,
        request_id: Argument<'py>,
        correlation_id: Argument<'py>,
        inputs: Argument<'py>,
        requested_output_names: Argument<'py>,
        model_name: Argument<'py>,
        model_version: Argument<'py>,
        flags: Argument<'py>,
        timeout: Argument<'py>,
        preferred_memory: Argument<'py>,
        trace: Argument<'py>,
        parameters: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<InferenceRequest> {
        let id = match request_id {
            Argument::Absent => String::new(),
            Argument::Given(id) => argument::string(&id).ok_or_else(|| wrong_arguments(SUPPORTED, &id))?,
        };
        let inputs = inputs.required(py, "inputs", SUPPORTED)?;
        let outputs = requested_output_names.required(py, "requested_output_names", SUPPORTED)?;
        let outputs = names(&outputs).ok_or_else(|| wrong_arguments(SUPPORTED, &outputs))?;
        let model = model_name.required(py, "model_name", SUPPORTED)?;
        let model = argument::string(&model).ok_or_else(|| wrong_arguments(SUPPORTED, &model))?;
        let version = model_version.or(-1, SUPPORTED)?;
        let flags = flags.or(0, SUPPORTED)?;
        let timeout_us = timeout.or(0, SUPPORTED)?;
        if let Argument::Given(memory) = &preferred_memory {
            memory.cast::<PreferredMemory>().map_err(|_| wrong_arguments(SUPPORTED, memory))?;
        }
        let traced = PyOnceLock::new();
        if let Argument::Given(trace) = &trace {
            let trace = trace.cast::<InferenceTrace>().map_err(|_| wrong_arguments(SUPPORTED, trace))?;
            let _ = traced.set(py, trace.clone().unbind());
        }
        let empty = |what: &str| {
            refused(format!("{what} for request with id '{id}' and model name '{model}' should not be empty."))
        };
        let parameters = parameters::of_request(parameters)?;
        let correlation_id = correlation(correlation_id)?;
        let inputs = tensors(&inputs, SUPPORTED, || empty("Input tensor"))?;
        if outputs.iter().any(String::is_empty) {
            return Err(empty("Requested output name"));
        }
        let cell = PyOnceLock::new();
        let _ = cell.set(py, inputs);
        Ok(InferenceRequest {
            id,
            correlation_id,
            flags: AtomicU32::new(flags),
            timeout_us,
            trace: traced,
            parameters: json(&parameters),
            inputs: cell,
            origin: Origin::Made(Target { model, version, outputs }),
        })
    }

    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.tensors(py)?)
    }

    fn request_id(&self) -> &str {
        &self.id
    }

    fn correlation_id<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.correlation_id {
            CorrelationId::Number(number) => number.into_bound_py_any(py),
            CorrelationId::Text(text) => text.into_bound_py_any(py),
        }
    }

    fn flags(&self) -> u32 {
        self.flags.load(Ordering::Relaxed)
    }

    fn set_flags(&self, flags: u32) {
        self.flags.store(flags, Ordering::Relaxed);
    }

    fn timeout(&self) -> u64 {
        self.timeout_us
    }

    /// The text of a JSON object.
    fn parameters(&self) -> &str {
        if self.parameters.is_empty() { "{}" } else { &self.parameters }
    }

    fn trace(&self, py: Python<'_>) -> PyResult<Py<InferenceTrace>> {
        Ok(self.traced(py)?.clone_ref(py))
    }

    fn requested_output_names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PySet>> {
        match &self.origin {
            Origin::Made(target) => PySet::new(py, &target.outputs),
            Origin::Received { reply, .. } => {
                let names = reply.link.output_names().iter().enumerate();
                PySet::new(py, names.filter(|(index, _)| reply.wants(*index as u16)).map(|(_, name)| name))
            }
        }
    }

    fn get_response_sender(&self) -> PyResult<InferenceResponseSender> {
        let reply = self.reply().ok_or_else(|| refused("A request that a model made has no response sender."))?;
        reply.missing_reasons.add(MissingReason::Sender);
        Ok(InferenceResponseSender::new(reply.clone()))
    }

    fn is_cancelled(&self) -> bool {
        self.reply().is_some_and(|reply| reply.is_cancelled())
    }

    fn set_release_flags(&self, flags: u32) {
        if let Some(reply) = self.reply() {
            let change = if flags == RESCHEDULE { MissingReasons::add } else { MissingReasons::remove };
            change(&reply.missing_reasons, MissingReason::Rescheduled);
        }
    }

    /// Calls the model and waits for its response, or gives an iterator over its responses.
    #[pyo3(signature = (decoupled = false))]
    fn exec<'py>(slf: &Bound<'py, Self>, decoupled: bool) -> PyResult<Bound<'py, PyAny>> {
        calls::execute(slf, decoupled)
    }

    /// Calls the model as `exec` does, and gives an awaitable of the running event loop.
    #[pyo3(signature = (decoupled = false))]
    fn async_exec<'py>(slf: &Bound<'py, Self>, decoupled: bool) -> PyResult<Bound<'py, PyAny>> {
        calls::execute_soon(slf, decoupled)
    }
}

/// `TRITONSERVER_REQUEST_RELEASE_RESCHEDULE`.
const RESCHEDULE: u32 = 2;

fn correlation(id: Argument<'_>) -> PyResult<CorrelationId> {
    let Argument::Given(id) = id else { return Ok(CorrelationId::default()) };
    if id.is_none() {
        return Err(wrong_arguments(SUPPORTED, &id));
    }
    if let Ok(text) = id.cast::<PyString>() {
        return Ok(CorrelationId::Text(text.to_str()?.to_owned()));
    }
    let number = id.cast::<PyInt>().map_err(|_| refused("Correlation ID must be integer or string"))?;
    let number = number.extract().map_err(|_| {
        let text = "Unable to cast Python instance of type <class 'int'> to C++ type 'unsigned long': a correlation ID \
                    has 64 bits and no sign";
        PyRuntimeError::new_err(text)
    })?;
    Ok(CorrelationId::Number(number))
}

/// The names in a sequence of texts, which a text itself is not here.
fn names(outputs: &Bound<'_, PyAny>) -> Option<Vec<String>> {
    let outputs: Vec<Bound<'_, PyAny>> = outputs.extract().ok()?;
    outputs.iter().map(argument::string).collect()
}

fn json(parameters: &[(String, Parameter)]) -> String {
    if parameters.is_empty() { String::new() } else { parameters::to_json(parameters) }
}

/// The link by which this thread can call models now.
pub fn callable() -> PyResult<Arc<Link>> {
    let link = link().ok_or_else(|| refused(NOT_SERVING))?;
    check_callable(&link).map(|()| link)
}

/// Whether models can be called by a link now.
pub fn check_callable(link: &Link) -> PyResult<()> {
    if link.is_forked() {
        return Err(refused(fork::NOT_OURS));
    }
    if link.stage() == Stage::Serving { Ok(()) } else { Err(refused(NOT_SERVING)) }
}

/// The error of a call before a model serves, or after, or in a thread that works for none.
const NOT_SERVING: &str = "BLS is only supported during the 'execute' function.";
