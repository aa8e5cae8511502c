//! The server, as Python drives it.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use alipes_runtime::model::Departure;
use alipes_runtime::pages::{Pages, WrittenPage};
use alipes_runtime::registry::IndexEntry;
use alipes_server::InheritedSockets;
use alipes_spec::{ModelSpec, ServerConfig};
use parking_lot::Mutex;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::control::Control;
use crate::detached::{Failure, detached};

/// Longest wait that is honoured as such; a larger one would overflow the clock.
const LONGEST_WAIT: Duration = Duration::from_secs(365 * 24 * 3600);

/// The moment `timeout_s` from now.
fn deadline(timeout_s: f64) -> PyResult<Instant> {
    let wait = Duration::try_from_secs_f64(timeout_s).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(alipes_clock::now() + wait.min(LONGEST_WAIT))
}

/// A descriptor that Python gives away.
fn owned(descriptor: Option<RawFd>) -> Option<OwnedFd> {
    // SAFETY: the control plane detaches each socket that it hands over, once, so that nothing else closes it.
    descriptor.map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// A server: bound when made, serving when started.
#[pyclass(frozen, module = "alipes._core")]
pub struct Server {
    inner: alipes_server::Server,
}

#[pymethods]
impl Server {
    #[new]
    #[pyo3(signature = (config, http = None, grpc = None, metrics = None))]
    fn new(
        py: Python<'_>,
        config: &str,
        http: Option<RawFd>,
        grpc: Option<RawFd>,
        metrics: Option<RawFd>,
    ) -> PyResult<Server> {
        let inherited = InheritedSockets { http: owned(http), grpc: owned(grpc), metrics: owned(metrics) };
        detached(py, || {
            let config: ServerConfig = serde_json::from_str(config)?;
            let inner = alipes_server::Server::bind(config, inherited);
            Ok(Server { inner: inner.map_err(|error| Failure::System(error.to_string()))? })
        })
    }

    fn start(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, || {
            let addresses = self.inner.start().map_err(|error| Failure::System(error.to_string()))?;
            let document = serde_json::json!({
                "http": addresses.http, "grpc": addresses.grpc, "metrics": addresses.metrics,
            });
            Ok(document.to_string())
        })
    }

    #[pyo3(signature = (spec, cancellation = None))]
    fn build(&self, py: Python<'_>, spec: &str, cancellation: Option<Py<Cancellation>>) -> PyResult<ModelVersion> {
        let cancellation = Cancellation::shared(cancellation.as_ref());
        detached(py, || {
            let spec: ModelSpec = serde_json::from_str(spec)?;
            let (name, version) = (spec.name.clone(), spec.version);
            let built = alipes_runtime::build::build(&self.inner.service.context, spec, &cancellation);
            let built = built.map_err(Failure::Load)?;
            let departure = built.departure();
            Ok(ModelVersion { name, version, departure, built: Mutex::new(Some(built)) })
        })
    }

    #[pyo3(signature = (version, spec, cancellation = None))]
    fn adapt(
        &self,
        py: Python<'_>,
        version: &ModelVersion,
        spec: &str,
        cancellation: Option<Py<Cancellation>>,
    ) -> PyResult<()> {
        let cancellation = Cancellation::shared(cancellation.as_ref());
        let built = version.built.lock().clone();
        let built = built.ok_or_else(|| PyValueError::new_err("a released version cannot be changed"))?;
        detached(py, || {
            let spec: ModelSpec = serde_json::from_str(spec)?;
            alipes_runtime::build::adapt(&built, &spec, &cancellation).map_err(Failure::Load)
        })
    }

    #[pyo3(signature = (name, versions, namespace = ""))]
    fn publish(&self, py: Python<'_>, name: &str, versions: Vec<Py<ModelVersion>>, namespace: &str) -> PyResult<()> {
        let versions: Option<Vec<_>> = versions.iter().map(|version| version.get().built.lock().clone()).collect();
        let versions = versions.ok_or_else(|| PyValueError::new_err("a released version cannot be published"))?;
        detached(py, || {
            self.inner.service.registry.publish(name, namespace, versions);
            Ok(())
        })
    }

    #[pyo3(signature = (name, namespace = ""))]
    fn forget(&self, py: Python<'_>, name: &str, namespace: &str) -> PyResult<()> {
        detached(py, || {
            let service = &self.inner.service;
            service.registry.forget(name, namespace);
            if !service.registry.models().contains_key(name) {
                service.context.traffic.set(name, None);
            }
            Ok(())
        })
    }

    fn set_page(&self, py: Python<'_>, path: &str, content_type: String, body: Vec<u8>) -> PyResult<()> {
        if !Pages::is_path(path) {
            let text = format!("a page has the path /openapi.json, /docs or one below /docs/, not '{path}'");
            return Err(PyValueError::new_err(text));
        }
        let is_visible = |&byte: &u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
        if content_type.is_empty() || !content_type.as_bytes().iter().all(is_visible) {
            return Err(PyValueError::new_err(format!("{content_type:?} is no content type")));
        }
        detached(py, || {
            self.inner.service.pages.set(path, WrittenPage { content_type, body: body.into() });
            Ok(())
        })
    }

    fn remove_page(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        detached(py, || {
            self.inner.service.pages.remove(path);
            Ok(())
        })
    }

    fn set_index(&self, py: Python<'_>, index: &str, ready: bool) -> PyResult<()> {
        detached(py, || {
            let index: Vec<IndexEntry> = serde_json::from_str(index)?;
            self.inner.service.registry.set_index(index, ready);
            Ok(())
        })
    }

    fn next_control(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<Control>> {
        let deadline = deadline(timeout_s)?;
        detached(py, || Ok(self.inner.service.control.next(deadline).map(Control::new)))
    }

    fn next_event(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<String>> {
        let deadline = deadline(timeout_s)?;
        detached(py, || {
            self.inner.service.next_event(deadline).map(|event| Ok(serde_json::to_string(&event)?)).transpose()
        })
    }

    fn next_payload<'py>(&self, py: Python<'py>, timeout_s: f64) -> PyResult<Option<(String, Bound<'py, PyBytes>)>> {
        let deadline = deadline(timeout_s)?;
        let payload = detached(py, || Ok(self.inner.service.payloads.next(deadline)))?;
        Ok(payload.map(|(head, body)| (head, PyBytes::new(py, &body))))
    }

    fn note_payloads(&self, py: Python<'_>, sent: u64, failed: u64) -> PyResult<()> {
        detached(py, || {
            self.inner.service.payloads.note(sent, failed);
            Ok(())
        })
    }

    fn close_payloads(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            self.inner.service.payloads.close();
            Ok(())
        })
    }

    fn metrics_text<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let text = detached(py, || Ok(self.inner.service.metrics_text()))?;
        Ok(PyBytes::new(py, text.as_bytes()))
    }

    fn idle_s(&self, py: Python<'_>) -> PyResult<f64> {
        detached(py, || Ok(self.inner.idle_for().as_secs_f64()))
    }

    fn pause_accepting(&self, py: Python<'_>, deadline_s: f64) -> PyResult<bool> {
        let deadline = deadline(deadline_s)?;
        detached(py, || Ok(self.inner.pause_accepting(deadline)))
    }

    fn resume_accepting(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            self.inner.resume_accepting();
            Ok(())
        })
    }

    fn retire(&self, py: Python<'_>, deadline_s: f64) -> PyResult<bool> {
        let deadline = deadline(deadline_s)?;
        detached(py, || Ok(self.inner.retire(deadline)))
    }

    fn drain(&self, py: Python<'_>, deadline_s: f64) -> PyResult<bool> {
        let deadline = deadline(deadline_s)?;
        detached(py, || Ok(self.inner.drain(deadline)))
    }

    fn cut(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            self.inner.cut();
            Ok(())
        })
    }

    fn reload(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            self.inner.reload();
            Ok(())
        })
    }

    fn set_api_keys(&self, py: Python<'_>, keys: Vec<String>) -> PyResult<()> {
        detached(py, || {
            self.inner.set_api_keys(keys);
            Ok(())
        })
    }

    fn limit_memory(&self, py: Python<'_>, inflight_bytes: u64, connection_bytes: u64) -> PyResult<()> {
        detached(py, || {
            self.inner.limit_memory(inflight_bytes, connection_bytes);
            Ok(())
        })
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            self.inner.stop();
            Ok(())
        })
    }
}

/// Ends a load before its time, from another thread.
#[pyclass(frozen, module = "alipes._core")]
pub struct Cancellation {
    inner: Arc<alipes_runtime::cancellation::Cancellation>,
}

#[pymethods]
impl Cancellation {
    #[new]
    fn new() -> Cancellation {
        Cancellation { inner: Arc::default() }
    }

    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            self.inner.cancel();
            Ok(())
        })
    }
}

impl Cancellation {
    /// The shared part; one that nobody cancels where Python gave none.
    fn shared(given: Option<&Py<Cancellation>>) -> Arc<alipes_runtime::cancellation::Cancellation> {
        given.map(|one| Arc::clone(&one.get().inner)).unwrap_or_default()
    }
}

/// One loaded version of a model. Python holds it until it is published or given up.
#[pyclass(frozen, module = "alipes._core")]
pub struct ModelVersion {
    #[pyo3(get)]
    name: String,
    #[pyo3(get)]
    version: i64,
    departure: Departure,
    built: Mutex<Option<Arc<alipes_runtime::model::ModelVersion>>>,
}

#[pymethods]
impl ModelVersion {
    /// Lets go of the version; what is published keeps it alive.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            drop(self.built.lock().take());
            Ok(())
        })
    }

    /// Lets go of the version and waits until its last request is answered and its engines are freed.
    fn drain(&self, py: Python<'_>, deadline_s: f64) -> PyResult<bool> {
        let deadline = deadline(deadline_s)?;
        detached(py, || {
            drop(self.built.lock().take());
            Ok(self.departure.wait_until(deadline))
        })
    }
}
