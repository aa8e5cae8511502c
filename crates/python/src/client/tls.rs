//! What a client's user says of encrypted connections.

use alipes_client::{Security, Target};
use alipes_tls::Identity;
use pyo3::prelude::*;

use super::errors::{exception, unusable};

/// Roots, and who the client is, read from files once.
#[pyclass(frozen, module = "alipes._core")]
pub struct ClientTls {
    security: Security,
}

#[pymethods]
impl ClientTls {
    #[new]
    #[pyo3(signature = (roots = None, certificate = None, key = None, server_name = None))]
    fn new(
        py: Python<'_>,
        roots: Option<&str>,
        certificate: Option<&str>,
        key: Option<&str>,
        server_name: Option<String>,
    ) -> PyResult<ClientTls> {
        let identity = match (certificate, key) {
            (Some(certificate), Some(key)) => Some(Identity { certificate, key }),
            (None, None) => None,
            _ => return Err(unusable(py, "a client's certificate and its key go together: one of them is missing")),
        };
        let security = Security::new(roots, identity, server_name);
        Ok(ClientTls { security: security.map_err(|error| unusable(py, &error.to_string()))? })
    }
}

/// The target, encrypted where there are settings for it.
pub fn seal(py: Python<'_>, target: Target, tls: Option<&ClientTls>) -> PyResult<Target> {
    let Some(tls) = tls else { return Ok(target) };
    target.encrypted(&tls.security).map_err(|error| exception(py, &error))
}
