//! The requests of a load, prepared for the server that they go to.

use alipes_client::{ClientError, Outgoing, Target};
use alipes_loadtest::Prepared;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySequence};

use crate::client::errors::exception;
use crate::client::requests::{Question, control};
use crate::client::target;
use crate::client::tls::ClientTls;

/// The requests of a load.
#[pyclass(module = "alipes._core")]
pub struct LoadTestRequests {
    pub target: Target,
    pub prepared: Vec<Prepared>,
}

#[pymethods]
impl LoadTestRequests {
    #[new]
    #[pyo3(signature = (address, wire, connect_timeout_s = 10.0, headers = None, tls = None))]
    fn new(
        py: Python<'_>,
        address: &str,
        wire: &str,
        connect_timeout_s: f64,
        headers: Option<Vec<(String, String)>>,
        tls: Option<&ClientTls>,
    ) -> PyResult<LoadTestRequests> {
        let target = target::read(py, address, wire, connect_timeout_s, headers, tls)?;
        Ok(LoadTestRequests { target, prepared: Vec::new() })
    }

    #[pyo3(signature = (model, version, inputs, outputs = None, request_id = "", parameters = None))]
    #[allow(clippy::too_many_arguments, reason = "what a request of the protocol may say")]
    fn infer(
        &mut self,
        py: Python<'_>,
        model: &str,
        version: &str,
        inputs: &Bound<'_, PySequence>,
        outputs: Option<&Bound<'_, PySequence>>,
        request_id: &str,
        parameters: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let question = Question { model, version, inputs, outputs, request_id, parameters };
        let outgoing = question.encode(self.target.wire)?;
        self.add(py, outgoing)
    }

    #[pyo3(signature = (path, body = None))]
    fn call(&mut self, py: Python<'_>, path: &str, body: Option<&[u8]>) -> PyResult<()> {
        let outgoing = control(self.target.wire, path, body);
        self.add(py, outgoing)
    }

    fn post(&mut self, py: Python<'_>, path: &str, content_type: &str, body: &[u8]) -> PyResult<()> {
        let prepared = Prepared::post(&self.target, path, content_type, body);
        self.keep(py, prepared)
    }

    fn __len__(&self) -> usize {
        self.prepared.len()
    }
}

impl LoadTestRequests {
    fn add(&mut self, py: Python<'_>, outgoing: Outgoing) -> PyResult<()> {
        let prepared = Prepared::new(&self.target, &outgoing);
        self.keep(py, prepared)
    }

    fn keep(&mut self, py: Python<'_>, prepared: Result<Prepared, ClientError>) -> PyResult<()> {
        self.prepared.push(prepared.map_err(|error| exception(py, &error))?);
        Ok(())
    }
}
