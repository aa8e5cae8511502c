//! A repository request, on its way through Python.

use alipes_protocol::{Code, InferError};
use alipes_runtime::control::{ControlCall, ControlKind};
use parking_lot::Mutex;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::worker::parameters;

/// A request to load or unload a model, or to log otherwise; to be answered once.
#[pyclass(frozen, module = "alipes._core")]
pub struct Control {
    #[pyo3(get)]
    kind: &'static str,
    #[pyo3(get)]
    model: String,
    #[pyo3(get)]
    parameters: String,
    call: Mutex<Option<ControlCall>>,
}

impl Control {
    pub fn new(call: ControlCall) -> Control {
        let members = call.request.parameters.iter().map(|(key, value)| (key.clone(), parameters::json(value)));
        let parameters: serde_json::Map<String, serde_json::Value> = members.collect();
        Control {
            kind: match call.request.kind {
                ControlKind::Load => "load",
                ControlKind::Unload => "unload",
                ControlKind::Log => "log",
            },
            model: call.request.model.clone(),
            parameters: serde_json::Value::Object(parameters).to_string(),
            call: Mutex::new(Some(call)),
        }
    }
}

#[pymethods]
impl Control {
    #[pyo3(signature = (code, message = ""))]
    fn reply(&self, code: Option<&str>, message: &str) -> PyResult<()> {
        let outcome = match code {
            None => Ok(()),
            Some(name) => {
                let code = Code::from_triton_name(name);
                let code = code.ok_or_else(|| PyValueError::new_err(format!("unknown error code '{name}'")))?;
                Err(InferError::new(code, message))
            }
        };
        let call = self.call.lock().take();
        call.ok_or_else(|| PyRuntimeError::new_err("the request was answered already"))?.reply(outcome);
        Ok(())
    }
}
