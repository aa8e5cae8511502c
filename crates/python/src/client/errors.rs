//! Failed calls as the exceptions of `alipes.errors`.

use alipes_client::{ClientError, Kind};
use alipes_protocol::error::grpc_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The exception for an error.
pub fn exception(py: Python<'_>, error: &ClientError) -> PyErr {
    let class = match error.kind {
        Kind::Connect | Kind::Broken => "TransportError",
        Kind::Tls => "TlsError",
        Kind::Timeout => "DeadlineExceeded",
        Kind::Refused(code) => grpc_exception(code),
    };
    build(py, class, error).unwrap_or_else(|cause| cause)
}

fn build(py: Python<'_>, class: &str, error: &ClientError) -> PyResult<PyErr> {
    let class = py.import("alipes.errors")?.getattr(class)?;
    let raised = class.call1((error.message.as_str(),))?;
    if matches!(error.kind, Kind::Connect | Kind::Tls) {
        raised.setattr("reached", false)?;
    }
    Ok(PyErr::from_value(raised))
}

/// An invalid argument of a client.
pub fn unusable(py: Python<'_>, text: &str) -> PyErr {
    let class = py.import("alipes.errors").and_then(|module| module.getattr("ConfigError"));
    class.and_then(|class| class.call1((text,))).map_or_else(|cause| cause, PyErr::from_value)
}

/// What cannot be sent at all.
pub fn wrong(text: impl Into<String>) -> PyErr {
    PyValueError::new_err(text.into())
}
