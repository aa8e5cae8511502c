//! The requests of a load, prepared for the server that they go to.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

use alipes_client::{ClientError, Compression, Outgoing, Target, Wire};
use alipes_loadtest::{Ids, Prepared, Sequences, Source, Unnumbered};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySequence};

use crate::client::errors::{exception, wrong};
use crate::client::requests::{Question, control};
use crate::client::target;
use crate::client::tls::ClientTls;

/// The parameter that asks a decoupled model's server to say when a request is over, if need be with an empty response.
const EMPTY_FINAL_RESPONSE: &str = "triton_enable_empty_final_response";

/// The requests of a load.
#[pyclass(module = "alipes._core")]
pub struct LoadTestRequests {
    target: Target,
    prepared: Vec<Prepared>,
    chains: Vec<Range<usize>>,
    ids: Arc<Ids>,
    most: Option<NonZeroUsize>,
}

#[pymethods]
impl LoadTestRequests {
    #[new]
    #[pyo3(signature = (address, wire, connect_timeout_s = 10.0, headers = None, tls = None, compression = None))]
    #[allow(clippy::too_many_arguments, reason = "what a server is, by name")]
    fn new(
        py: Python<'_>,
        address: &str,
        wire: &str,
        connect_timeout_s: f64,
        headers: Option<Vec<(String, String)>>,
        tls: Option<&ClientTls>,
        compression: Option<&str>,
    ) -> PyResult<LoadTestRequests> {
        let mut target = target::read(py, address, wire, connect_timeout_s, headers, tls)?;
        target.compression = compression.map(|name| named(name, target.wire)).transpose()?;
        Ok(LoadTestRequests {
            target,
            prepared: Vec::new(),
            chains: Vec::new(),
            ids: Arc::new(Ids::new(1..u64::MAX)),
            most: None,
        })
    }

    #[pyo3(signature = (
        model, version, inputs, outputs = None, request_id = "", parameters = None, stream = false, decoupled = false,
        in_sequence = false
    ))]
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
        stream: bool,
        decoupled: bool,
        in_sequence: bool,
    ) -> PyResult<()> {
        let question = Question { model, version, inputs, outputs, request_id, parameters };
        if !stream {
            let outgoing = question.encode(self.target.wire)?;
            return if in_sequence { self.add_unnumbered(py, outgoing, None) } else { self.add(py, &outgoing) };
        }
        if self.target.wire == Wire::Http {
            return Err(wrong("streams need gRPC: give an address of gRPC"));
        }
        let parameters = match parameters {
            Some(parameters) => parameters.copy()?,
            None => PyDict::new(py),
        };
        if decoupled {
            parameters.set_item(EMPTY_FINAL_RESPONSE, true)?;
        }
        let outgoing = Question { parameters: Some(&parameters), ..question }.encode(self.target.wire)?;
        if in_sequence {
            return self.add_unnumbered(py, outgoing, Some(decoupled));
        }
        let prepared = Prepared::stream(&self.target, &outgoing, decoupled);
        self.keep(py, prepared)
    }

    fn chain(&mut self) -> PyResult<()> {
        let begin = self.chains.last().map_or(0, |chain| chain.end);
        if begin == self.prepared.len() {
            return Err(wrong("a chain needs a request: add its requests, then call chain()"));
        }
        self.chains.push(begin..self.prepared.len());
        Ok(())
    }

    #[pyo3(signature = (first, end = None, most = None))]
    fn number(&mut self, first: u64, end: Option<u64>, most: Option<NonZeroUsize>) -> PyResult<()> {
        let end = end.unwrap_or(u64::MAX);
        if end <= first {
            return Err(wrong(format!("there are no ids from {first} to {end}")));
        }
        (self.ids, self.most) = (Arc::new(Ids::new(first..end)), most);
        Ok(())
    }

    #[pyo3(signature = (path, body = None))]
    fn call(&mut self, py: Python<'_>, path: &str, body: Option<&[u8]>) -> PyResult<()> {
        let outgoing = control(self.target.wire, path, body);
        self.add(py, &outgoing)
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
    /// The requests as a source of a load.
    ///
    /// # Errors
    /// Requests behind the last chain.
    pub fn source(&self, weight: f64) -> PyResult<Source> {
        let rest = self.chains.last().map_or(0, |chain| self.prepared.len() - chain.end);
        if rest > 0 {
            return Err(wrong(format!("the last {rest} requests belong to no chain: call chain() behind them")));
        }
        let of_sequences = |chains| Sequences { chains, ids: self.ids.clone(), most: self.most };
        let sequences = (!self.chains.is_empty()).then(|| of_sequences(self.chains.clone()));
        Ok(Source { target: self.target.clone(), requests: self.prepared.clone(), sequences, weight })
    }

    fn add_unnumbered(&mut self, py: Python<'_>, outgoing: Outgoing, stream: Option<bool>) -> PyResult<()> {
        let request = Unnumbered::new(&self.target, outgoing, stream);
        self.keep(py, request.map(|request| Prepared::OfSequence(Box::new(request))))
    }

    fn add(&mut self, py: Python<'_>, outgoing: &Outgoing) -> PyResult<()> {
        let prepared = Prepared::new(&self.target, outgoing);
        self.keep(py, prepared)
    }

    fn keep(&mut self, py: Python<'_>, prepared: Result<Prepared, ClientError>) -> PyResult<()> {
        self.prepared.push(prepared.map_err(|error| exception(py, &error))?);
        Ok(())
    }
}

fn named(name: &str, wire: Wire) -> PyResult<Compression> {
    let known = [Compression::Gzip, Compression::Deflate];
    match known.into_iter().find(|compression| compression.name() == name) {
        Some(compression) if wire == Wire::Grpc => Ok(compression),
        Some(_) => Err(wrong("requests are compressed over gRPC: give an address of gRPC")),
        None => Err(wrong(format!("the compression '{name}' is unknown: expected 'gzip' or 'deflate'"))),
    }
}
