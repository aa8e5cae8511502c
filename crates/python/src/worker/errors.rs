//! What is raised at a model's author: Triton's exception, its error object, and its words for wrong arguments.

use alipes_protocol::Code;
use alipes_protocol::error::TABLE;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::argument::{self, Argument};

create_exception!(
    c_python_backend_utils,
    TritonModelException,
    PyException,
    "Raised where a model uses its tools in a way that cannot work."
);

/// An error with Triton's exception type.
pub fn refused(text: impl Into<String>) -> PyErr {
    TritonModelException::new_err(text.into())
}

/// The `TypeError` of a constructor, in the form that models and their tests look for.
pub fn wrong_arguments(supported: &str, argument: &Bound<'_, PyAny>) -> PyErr {
    wrong("__init__(): incompatible constructor arguments", supported, argument)
}

/// The `TypeError` of a method, in the form that models and their tests look for.
pub fn wrong_call(method: &str, supported: &str, argument: &Bound<'_, PyAny>) -> PyErr {
    wrong(&format!("{method}(): incompatible function arguments"), supported, argument)
}

fn wrong(what: &str, supported: &str, argument: &Bound<'_, PyAny>) -> PyErr {
    let seen = argument.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string_lossy().into_owned());
    PyTypeError::new_err(format!(
        "{what}. The following argument types are supported:\n    1. c_python_backend_utils.{supported}\n\nInvoked with: {seen}"
    ))
}

/// A type as Python prints it: `<class 'str'>`.
pub fn class_text(object: &Bound<'_, PyAny>) -> String {
    let class: Bound<'_, PyType> = object.get_type();
    class.str().map_or_else(|_| "?".to_owned(), |text| text.to_string_lossy().into_owned())
}

/// Triton's number for INTERNAL, the default.
pub const INTERNAL: u8 = 1;

const SUPPORTED: &str = "TritonError(message: str, code: int = 1)";

/// What a response carries in place of outputs.
#[pyclass(frozen, module = "c_python_backend_utils")]
pub struct TritonError {
    pub text: Py<PyString>,
    /// What a model sees, and what its caller gets: Triton's number, or that of a code that Triton does not have.
    pub code: u8,
    /// The code of a called model's error, of which a model sees INTERNAL; else the same.
    pub called_code: u8,
}

/// An error with the code whose exception has this name, such as `Overloaded`; INTERNAL where none has.
pub fn failure(text: Py<PyString>, exception: &str) -> TritonError {
    let row = TABLE.iter().find(|row| row.exception == exception).unwrap_or(Code::Internal.row());
    TritonError { text, code: row.code as u8, called_code: row.code as u8 }
}

/// An error of a called model, of which a model is told no other code than INTERNAL.
pub fn of_called_model(text: Py<PyString>, called_code: u8) -> TritonError {
    TritonError { text, code: INTERNAL, called_code }
}

/// The name of the exception that stands for an error.
pub fn exception_of(error: &TritonError) -> &'static str {
    TABLE.get(usize::from(error.called_code)).map_or("Internal", |row| row.exception)
}

#[pymethods]
impl TritonError {
    #[classattr]
    const UNKNOWN: u8 = 0;
    #[classattr]
    const INTERNAL: u8 = INTERNAL;
    #[classattr]
    const NOT_FOUND: u8 = 2;
    #[classattr]
    const INVALID_ARG: u8 = 3;
    #[classattr]
    const UNAVAILABLE: u8 = 4;
    #[classattr]
    const UNSUPPORTED: u8 = 5;
    #[classattr]
    const ALREADY_EXISTS: u8 = 6;
    #[classattr]
    const CANCELLED: u8 = 7;

    #[new]
    #[pyo3(signature = (message, code = Argument::Absent), text_signature = "(message, code=1)")]
    fn new(message: &Bound<'_, PyAny>, code: Argument<'_>) -> PyResult<TritonError> {
        let text = argument::text(message).ok_or_else(|| wrong_arguments(SUPPORTED, message))?;
        let code = match code {
            Argument::Absent => INTERNAL,
            Argument::Given(code) => {
                let number = code.extract::<u8>().ok().filter(|number| *number <= Self::CANCELLED);
                number.ok_or_else(|| wrong_arguments(SUPPORTED, &code))?
            }
        };
        Ok(TritonError { text: text.unbind(), code, called_code: code })
    }

    fn message(&self, py: Python<'_>) -> Py<PyString> {
        self.text.clone_ref(py)
    }

    fn code(&self) -> u8 {
        self.code
    }
}
