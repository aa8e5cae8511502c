//! `InferenceResponse`: outputs or an error, with parameters.

use std::sync::Arc;

use alipes_protocol::Parameter;
use pyo3::prelude::*;
use pyo3::types::{PyList, PySequence, PyString, PyTuple};
use smallvec::SmallVec;

use super::argument::Argument;
use super::errors::{TritonError, refused, wrong_arguments};
use super::parameters;
use super::tensor::Tensor;

const SUPPORTED: &str = "InferenceResponse(output_tensors: List[c_python_backend_utils.Tensor] = [], \
                         error: c_python_backend_utils.TritonError = None, parameters: dict = None)";

/// Tensors in a model's order; most have one or two.
pub type Tensors = SmallVec<[Py<Tensor>; 2]>;

/// What a model answers, or what another model answered to it.
#[pyclass(frozen, module = "c_python_backend_utils")]
pub struct InferenceResponse {
    pub outputs: Tensors,
    pub error: Option<Py<TritonError>>,
    parameters: Parameters,
}

enum Parameters {
    None,
    /// Attached by this model.
    Attached(Arc<[(String, Parameter)]>),
    /// Received with another model's answer.
    Received(String),
}

impl InferenceResponse {
    /// What another model answered.
    pub fn received(outputs: Tensors, parameters: String) -> InferenceResponse {
        InferenceResponse { outputs, error: None, parameters: Parameters::Received(parameters) }
    }

    /// What the model answers a call.
    pub fn of_call(outputs: Tensors, parameters: Vec<(String, Parameter)>) -> InferenceResponse {
        let parameters = if parameters.is_empty() { Parameters::None } else { Parameters::Attached(parameters.into()) };
        InferenceResponse { outputs, error: None, parameters }
    }

    /// Why another model did not answer.
    pub fn failed(error: Py<TritonError>) -> InferenceResponse {
        InferenceResponse { outputs: Tensors::new(), error: Some(error), parameters: Parameters::None }
    }

    /// The parameters to send on; `None` where there are none.
    pub fn attached(&self) -> Option<Arc<[(String, Parameter)]>> {
        match &self.parameters {
            Parameters::None => None,
            Parameters::Attached(parameters) => Some(parameters.clone()),
            Parameters::Received(text) => Some(parameters::from_json(text).into()),
        }
    }
}

#[pymethods]
impl InferenceResponse {
    #[new]
    #[pyo3(signature = (output_tensors = Argument::Absent, error = None, parameters = None),
        text_signature = "(output_tensors=[], error=None, parameters=None)")]
    fn new(
        output_tensors: Argument<'_>,
        error: Option<&Bound<'_, PyAny>>,
        parameters: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<InferenceResponse> {
        let empty = || refused("Output tensor for inference response should not be empty.");
        let outputs = match output_tensors {
            Argument::Absent => Tensors::new(),
            Argument::Given(list) => tensors(&list, SUPPORTED, empty)?,
        };
        let error = match error {
            None => None,
            Some(object) => {
                let error = object.cast::<TritonError>().map_err(|_| wrong_arguments(SUPPORTED, object))?;
                Some(error.clone().unbind())
            }
        };
        let parameters = parameters::of_response(parameters)?;
        let parameters = if parameters.is_empty() { Parameters::None } else { Parameters::Attached(parameters.into()) };
        Ok(InferenceResponse { outputs, error, parameters })
    }

    fn output_tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.outputs)
    }

    fn has_error(&self) -> bool {
        self.error.is_some()
    }

    fn error(&self, py: Python<'_>) -> Option<Py<TritonError>> {
        self.error.as_ref().map(|error| error.clone_ref(py))
    }

    /// The text of a JSON object.
    fn parameters(&self) -> String {
        match &self.parameters {
            Parameters::None => "{}".to_owned(),
            Parameters::Attached(parameters) => parameters::to_json(parameters),
            Parameters::Received(text) if text.is_empty() => "{}".to_owned(),
            Parameters::Received(text) => text.clone(),
        }
    }
}

/// The tensors of a sequence; `empty` is raised for one that is `None`.
pub fn tensors(value: &Bound<'_, PyAny>, supported: &str, empty: impl Fn() -> PyErr) -> PyResult<Tensors> {
    let tensor = |item: Bound<'_, PyAny>| match item.cast::<Tensor>() {
        Ok(tensor) => Ok(tensor.clone().unbind()),
        Err(_) if item.is_none() => Err(empty()),
        Err(_) => Err(wrong_arguments(supported, value)),
    };
    if let Ok(list) = value.cast::<PyList>() {
        return list.iter().map(tensor).collect();
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        return tuple.iter().map(tensor).collect();
    }
    let sequence = value.cast::<PySequence>().ok().filter(|_| !value.is_instance_of::<PyString>());
    let sequence = sequence.ok_or_else(|| wrong_arguments(supported, value))?;
    sequence.try_iter()?.map(|item| tensor(item?)).collect()
}
