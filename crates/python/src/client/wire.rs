//! The protocol by its name.

use alipes_client::Wire;
use pyo3::prelude::*;

use super::errors::wrong;

/// The protocol that Python names.
pub fn read(name: &str) -> PyResult<Wire> {
    match name {
        "grpc" => Ok(Wire::Grpc),
        "http" => Ok(Wire::Http),
        _ => Err(wrong(format!("the wire '{name}' is unknown: expected 'grpc' or 'http'"))),
    }
}
