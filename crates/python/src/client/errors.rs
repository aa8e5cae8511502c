//! Failed calls as the exceptions of `alipes.errors`.

use alipes_client::{ClientError, Kind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Classes by number of the gRPC code; what is missing is an `InferError`.
const CLASSES: [(i32, &str); 11] = [
    (1, "Cancelled"),
    (3, "InvalidArgument"),
    (4, "DeadlineExceeded"),
    (5, "NotFound"),
    (6, "AlreadyExists"),
    (7, "PermissionDenied"),
    (8, "Overloaded"),
    (12, "Unsupported"),
    (13, "Internal"),
    (14, "NotReady"),
    (16, "Unauthenticated"),
];

/// The exception for an error.
pub fn exception(py: Python<'_>, error: &ClientError) -> PyErr {
    let class = match error.kind {
        Kind::Connect | Kind::Broken => "TransportError",
        Kind::Timeout => "DeadlineExceeded",
        Kind::Refused(code) => {
            CLASSES.iter().find(|(known, _)| *known == code).map_or("InferError", |(_, class)| class)
        }
    };
    build(py, class, &error.message).unwrap_or_else(|cause| cause)
}

fn build(py: Python<'_>, class: &str, message: &str) -> PyResult<PyErr> {
    let class = py.import("alipes.errors")?.getattr(class)?;
    Ok(PyErr::from_value(class.call1((message,))?))
}

/// What cannot be sent at all.
pub fn wrong(text: impl Into<String>) -> PyErr {
    PyValueError::new_err(text.into())
}
