//! Which server is asked, and how, as Python says it.

use std::time::Duration;

use alipes_client::{Target, Wire};
use pyo3::prelude::*;

use super::errors::{exception, wrong};
use super::tls::{ClientTls, seal};
use crate::worker::arrays;

/// The server at an address, asked over the protocol of this name.
///
/// # Errors
/// `TransportError` for what is no address, `ValueError` for another protocol.
pub fn read(
    py: Python<'_>,
    address: &str,
    wire: &str,
    connect_timeout_s: f64,
    headers: Option<Vec<(String, String)>>,
    tls: Option<&ClientTls>,
) -> PyResult<Target> {
    arrays::prepare(py)?;
    let wire = match wire {
        "grpc" => Wire::Grpc,
        "http" => Wire::Http,
        _ => return Err(wrong(format!("the wire '{wire}' is unknown: expected 'grpc' or 'http'"))),
    };
    let limit = Duration::try_from_secs_f64(connect_timeout_s.max(0.0)).unwrap_or(Duration::MAX);
    let target = Target::new(address, wire, headers.unwrap_or_default(), limit);
    seal(py, target.map_err(|error| exception(py, &error))?, tls)
}
