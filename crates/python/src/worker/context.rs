//! What travels with a request beside its tensors: where memory is preferred, and the trace that it is part of.

use pyo3::prelude::*;

/// Where a caller prefers a response's tensors to lie. There is main memory only, so every wish is served from it.
#[pyclass(frozen, module = "c_python_backend_utils")]
pub struct PreferredMemory;

#[pymethods]
impl PreferredMemory {
    #[new]
    #[pyo3(signature = (preferred_memory_type, preferred_device_id = 0))]
    fn new(preferred_memory_type: &Bound<'_, PyAny>, preferred_device_id: i64) -> PreferredMemory {
        let _ = (preferred_memory_type, preferred_device_id);
        PreferredMemory
    }
}

/// The trace of a request, to be handed on in calls.
#[pyclass(frozen, module = "c_python_backend_utils")]
#[derive(Default)]
pub struct InferenceTrace {
    /// OpenTelemetry context.
    pub context: Option<String>,
    /// Ticket of the request that is traced; 0 where it is none of this process.
    pub ticket: u64,
}

#[pymethods]
impl InferenceTrace {
    #[new]
    fn new() -> InferenceTrace {
        InferenceTrace::default()
    }

    fn get_context(&self) -> Option<&str> {
        self.context.as_deref()
    }
}
