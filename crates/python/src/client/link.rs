//! The calls to one server: either the calling thread waits for them, or a mailbox receives their outcome.

use std::sync::Arc;
use std::time::Duration;

use alipes_client::async_pool::AsyncPool;
use alipes_client::pool::Pool;
use alipes_client::{ClientError, Incoming, Outgoing, Target};
use arc_swap::ArcSwap;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PySequence};

use super::errors::{exception, wrong};
use super::mailbox::{ClientMailbox, ClientTask, Form, Letter};
use super::outputs;
use super::plan::{self, ClientPlan};
use super::requests::{Question, control};
use super::target;
use super::tls::ClientTls;
use super::waiting::{Deadline, wait};

/// The calls to one server.
#[pyclass(frozen, module = "alipes._core")]
pub struct ClientLink {
    target: Arc<Target>,
    own: ArcSwap<Own>,
}

/// What belongs to one process: a forked one leaves it alone, for the sockets are its parent's, and begins its own.
struct Own {
    process: u32,
    pool: Arc<Pool>,
    async_pool: Arc<AsyncPool>,
}

impl Own {
    fn new(target: &Arc<Target>) -> Arc<Own> {
        let (pool, async_pool) = (Pool::new(target.clone()), AsyncPool::new(target.clone()));
        Arc::new(Own { process: std::process::id(), pool, async_pool })
    }
}

#[pymethods]
impl ClientLink {
    #[new]
    #[pyo3(signature = (address, wire, connect_timeout_s = 10.0, headers = None, tls = None))]
    fn new(
        py: Python<'_>,
        address: &str,
        wire: &str,
        connect_timeout_s: f64,
        headers: Option<Vec<(String, String)>>,
        tls: Option<&ClientTls>,
    ) -> PyResult<ClientLink> {
        let target = Arc::new(target::read(py, address, wire, connect_timeout_s, headers, tls)?);
        Ok(ClientLink { own: ArcSwap::new(Own::new(&target)), target })
    }

    #[pyo3(signature = (
        model, version, inputs, outputs = None, request_id = "", parameters = None, timeout_s = None, headers = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "what a request of the protocol may say")]
    fn infer<'py>(
        &self,
        py: Python<'py>,
        model: &str,
        version: &str,
        inputs: &Bound<'py, PySequence>,
        outputs: Option<&Bound<'py, PySequence>>,
        request_id: &str,
        parameters: Option<&Bound<'py, PyDict>>,
        timeout_s: Option<f64>,
        headers: Option<Vec<(String, String)>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let question = Question { model, version, inputs, outputs, request_id, parameters };
        let request = Outgoing { headers: headers.unwrap_or_default(), ..question.encode(self.target.wire)? };
        let answer = self.ask(py, request, timeout_s)?;
        python(py, &answer)
    }

    #[pyo3(signature = (plan, inputs, timeout_s = None))]
    fn plain<'py>(
        &self,
        py: Python<'py>,
        plan: &ClientPlan,
        inputs: &Bound<'py, PyAny>,
        timeout_s: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(planned) = plan.encode(inputs, self.target.wire)? else { return Ok(None) };
        let answer = self.ask(py, planned.request, timeout_s)?;
        plan::answer(py, &answer, planned.single).map(Some)
    }

    #[pyo3(signature = (path, body = None, timeout_s = None))]
    fn call<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        body: Option<&[u8]>,
        timeout_s: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let answer = self.ask(py, control(self.target.wire, path, body), timeout_s)?;
        python(py, &answer)
    }

    #[pyo3(signature = (
        mailbox, number, model, version, inputs, outputs = None, request_id = "", parameters = None, timeout_s = None,
        headers = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "what a request of the protocol may say")]
    fn begin_infer(
        &self,
        py: Python<'_>,
        mailbox: &ClientMailbox,
        number: u64,
        model: &str,
        version: &str,
        inputs: &Bound<'_, PySequence>,
        outputs: Option<&Bound<'_, PySequence>>,
        request_id: &str,
        parameters: Option<&Bound<'_, PyDict>>,
        timeout_s: Option<f64>,
        headers: Option<Vec<(String, String)>>,
    ) -> PyResult<ClientTask> {
        let question = Question { model, version, inputs, outputs, request_id, parameters };
        let request = Outgoing { headers: headers.unwrap_or_default(), ..question.encode(self.target.wire)? };
        self.begin(py, (mailbox, number), Form::Whole, request, timeout_s)
    }

    #[pyo3(signature = (mailbox, number, plan, inputs, timeout_s = None))]
    fn begin_plain(
        &self,
        py: Python<'_>,
        mailbox: &ClientMailbox,
        number: u64,
        plan: &ClientPlan,
        inputs: &Bound<'_, PyAny>,
        timeout_s: Option<f64>,
    ) -> PyResult<Option<ClientTask>> {
        let Some(planned) = plan.encode(inputs, self.target.wire)? else { return Ok(None) };
        let form = Form::Planned { single: planned.single };
        self.begin(py, (mailbox, number), form, planned.request, timeout_s).map(Some)
    }

    #[pyo3(signature = (mailbox, number, path, body = None, timeout_s = None))]
    fn begin_call(
        &self,
        py: Python<'_>,
        mailbox: &ClientMailbox,
        number: u64,
        path: &str,
        body: Option<&[u8]>,
        timeout_s: Option<f64>,
    ) -> PyResult<ClientTask> {
        self.begin(py, (mailbox, number), Form::Whole, control(self.target.wire, path, body), timeout_s)
    }

    fn close(&self, py: Python<'_>) {
        let own = self.own();
        py.detach(|| {
            own.pool.close();
            own.async_pool.close();
        });
    }
}

impl ClientLink {
    fn own(&self) -> Arc<Own> {
        let own = self.own.load_full();
        if own.process == std::process::id() {
            return own;
        }
        let fresh = Own::new(&self.target);
        std::mem::forget(self.own.swap(fresh.clone()));
        fresh
    }

    fn ask(&self, py: Python<'_>, request: Outgoing, timeout_s: Option<f64>) -> PyResult<Incoming> {
        let own = self.own();
        let outcome = (|| {
            let mut call = own.pool.call(request, limit(timeout_s))?;
            Ok(wait(py, &Deadline::after(None), |slice| call.wait(slice)))
        })();
        let outcome: Result<PyResult<Option<Result<Incoming, ClientError>>>, ClientError> = outcome;
        match outcome.map_err(|error| exception(py, &error))?? {
            Some(answer) => answer.map_err(|error| exception(py, &error)),
            None => Err(wrong("a call without a deadline ended without an answer")),
        }
    }

    fn begin(
        &self,
        py: Python<'_>,
        (mailbox, number): (&ClientMailbox, u64),
        form: Form,
        request: Outgoing,
        timeout_s: Option<f64>,
    ) -> PyResult<ClientTask> {
        let mailbox = mailbox.mailbox();
        let done = move |outcome| mailbox.put(Letter { number, form, outcome });
        let task = self.own().async_pool.call(request, limit(timeout_s), done);
        Ok(ClientTask::new(task.map_err(|error| exception(py, &error))?))
    }
}

fn limit(seconds: Option<f64>) -> Option<Duration> {
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok())
}

/// An answer as Python gets it: a tuple for an inference, bytes for anything else.
pub fn python<'py>(py: Python<'py>, answer: &Incoming) -> PyResult<Bound<'py, PyAny>> {
    match answer {
        Incoming::Reply(reply) => outputs::reply(py, reply).map(Bound::into_any),
        Incoming::Body(bytes) => Ok(PyBytes::new(py, bytes).into_any()),
    }
}
