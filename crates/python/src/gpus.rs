//! The machine's GPUs, for Python.

use pyo3::prelude::*;

/// A GPU that programs of this process may use, or a part of one.
#[pyclass(frozen, get_all, eq, module = "alipes._core")]
#[derive(Clone, PartialEq, Eq)]
pub struct Gpu {
    index: usize,
    uuid: String,
    name: String,
    memory_total_bytes: Option<u64>,
    compute_capability: (i32, i32),
}

#[pymethods]
impl Gpu {
    #[new]
    #[pyo3(signature = (index, uuid, name, memory_total_bytes, compute_capability))]
    fn new(
        index: usize,
        uuid: String,
        name: String,
        memory_total_bytes: Option<u64>,
        compute_capability: (i32, i32),
    ) -> Gpu {
        Gpu { index, uuid, name, memory_total_bytes, compute_capability }
    }

    fn __repr__(&self) -> String {
        format!("Gpu(index={}, uuid='{}', name='{}')", self.index, self.uuid, self.name)
    }
}

impl From<alipes_gpu::Gpu> for Gpu {
    fn from(gpu: alipes_gpu::Gpu) -> Gpu {
        let alipes_gpu::Gpu { index, uuid, name, memory_total_bytes, compute_capability } = gpu;
        Gpu { index, uuid, name, memory_total_bytes, compute_capability }
    }
}

/// The GPUs that CUDA lets this process see.
pub fn visible(py: Python<'_>) -> Vec<Gpu> {
    // While the interpreter is held, no Python thread changes the environment.
    #[allow(clippy::disallowed_methods, reason = "CUDA reads this variable of this process, not alipes' settings")]
    let visible = std::env::var_os("CUDA_VISIBLE_DEVICES").map(|text| text.to_string_lossy().into_owned());
    py.detach(|| alipes_gpu::visible_gpus(visible.as_deref())).into_iter().map(Gpu::from).collect()
}
