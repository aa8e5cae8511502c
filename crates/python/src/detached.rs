//! Long calls: the interpreter is released, panics are caught, errors are converted.

use std::panic::{AssertUnwindSafe, catch_unwind};

use alipes_protocol::InferError;
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
    // An error that Triton has no name for is the caller's fault.
    named.set_item("code", error.code.row().triton_name.unwrap_or("INVALID_ARG"))?;
    Ok(PyErr::from_value(class.call((error.message.as_str(),), Some(&named))?))
}

fn text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "unknown panic".to_owned())
}
