//! The one door through which long calls go: interpreter released, panic caught, error converted.

use std::panic::{AssertUnwindSafe, catch_unwind};

use alipes_protocol::{Code, InferError};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Why a call failed, in the terms of `alipes.errors`.
pub enum Failure {
    /// A document from Python is not what this build understands.
    Document(serde_json::Error),
    /// The system refused something.
    System(String),
    /// A model could not be loaded.
    Load(InferError),
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::Document(error)
    }
}

/// Runs a call without the interpreter.
pub fn detached<T: Send>(py: Python<'_>, call: impl FnOnce() -> Result<T, Failure> + Send) -> PyResult<T> {
    let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(call)));
    match outcome {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(failure)) => Err(exception(py, failure)),
        Err(panic) => Err(PyRuntimeError::new_err(format!("alipes has a defect, please report it: {}", text(&*panic)))),
    }
}

fn exception(py: Python<'_>, failure: Failure) -> PyErr {
    match failure {
        Failure::Document(error) => PyValueError::new_err(error.to_string()),
        Failure::System(text) => PyOSError::new_err(text),
        Failure::Load(error) => load_error(py, &error).unwrap_or_else(|cause| cause),
    }
}

/// `alipes.errors.ModelLoadError` with its code; the class knows Triton's word for it.
fn load_error(py: Python<'_>, error: &InferError) -> PyResult<PyErr> {
    let class = py.import("alipes.errors")?.getattr("ModelLoadError")?;
    let named = PyDict::new(py);
    named.set_item("code", name(error.code))?;
    Ok(PyErr::from_value(class.call((error.message.as_str(),), Some(&named))?))
}

fn text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "unknown panic".to_owned())
}

/// Names of Triton's error enumeration, as Python says them.
const NAMES: [(&str, Code); 8] = [
    ("UNKNOWN", Code::Unknown),
    ("INTERNAL", Code::Internal),
    ("NOT_FOUND", Code::NotFound),
    ("INVALID_ARG", Code::InvalidArgument),
    ("UNAVAILABLE", Code::Unavailable),
    ("UNSUPPORTED", Code::Unsupported),
    ("ALREADY_EXISTS", Code::AlreadyExists),
    ("CANCELLED", Code::Cancelled),
];

/// The code with this name.
pub fn code(name: &str) -> Option<Code> {
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, code)| *code)
}

/// The name of a code; one that Triton does not know is the caller's fault.
fn name(code: Code) -> &'static str {
    NAMES.iter().find(|(_, known)| *known == code).map_or("INVALID_ARG", |(name, _)| name)
}
