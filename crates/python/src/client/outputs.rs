//! Outputs to Python: read-only arrays, over the memory in which a response arrived where that is worth it.

use std::ptr::NonNull;

use alipes_client::ClientError;
use alipes_protocol::codec::proto::Reply;
use alipes_protocol::{Datatype, Parameter, Tensor};
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::errors::exception;
use crate::worker::arrays::{self, Memory};
use crate::worker::strings;

/// Outputs with fewer bytes are copied: that is quicker than an object for their memory, and lets go of all that
/// arrived together with them.
const VIEWED_BYTES: usize = 16 * 1024;

/// A response to a call: outputs by name, the version that answered, the request's id, and parameters. An output that
/// lies in shared memory is its datatype and its shape.
pub fn reply<'py>(py: Python<'py>, reply: &Reply) -> PyResult<Bound<'py, PyTuple>> {
    let outputs = PyDict::new(py);
    for (index, output) in reply.outputs.iter().enumerate() {
        let value = if reply.elsewhere.contains(&index) {
            let shape = PyTuple::new(py, output.shape.iter())?;
            (output.datatype.name(), shape).into_pyobject(py)?.into_any()
        } else {
            array(py, output)?
        };
        outputs.set_item(PyString::intern(py, &output.name), value)?;
    }
    let parameters = PyDict::new(py);
    for (key, value) in &reply.parameters {
        match value {
            Parameter::Bool(value) => parameters.set_item(key, value)?,
            Parameter::Int64(value) => parameters.set_item(key, value)?,
            Parameter::Double(value) => parameters.set_item(key, value)?,
            Parameter::String(value) => parameters.set_item(key, value)?,
        }
    }
    (outputs, reply.model_version.as_str(), reply.id.as_str(), parameters).into_pyobject(py)
}

/// What is raised for an output that lies in shared memory where nobody asked for that.
pub fn missing(py: Python<'_>, name: &str) -> PyErr {
    let text = format!("the server's response cannot be read: output '{name}' has no elements");
    exception(py, &ClientError::broken(text))
}

/// Outputs by name.
pub fn dictionary<'py>(py: Python<'py>, outputs: &[Tensor]) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for output in outputs {
        all.set_item(PyString::intern(py, &output.name), array(py, output)?)?;
    }
    Ok(all)
}

/// An output as an array; BF16, which numpy lacks, as FP32, and BYTES as objects.
pub fn array<'py>(py: Python<'py>, output: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    let Tensor { datatype, shape, data, .. } = output;
    let array = match datatype {
        Datatype::Bytes => strings::array(py, shape, data)?,
        Datatype::Bf16 => arrays::of_bytes(py, Datatype::Fp32, shape, &widened(data))?,
        _ if data.len() < VIEWED_BYTES || !is_aligned(*datatype, data) => arrays::of_bytes(py, *datatype, shape, data)?,
        _ => view(py, output)?,
    };
    arrays::freeze(&array)?;
    Ok(array)
}

fn view<'py>(py: Python<'py>, output: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    let Tensor { datatype, shape, data, .. } = output;
    let start = NonNull::new(data.as_ptr().cast_mut()).unwrap_or(NonNull::dangling());
    let memory = Memory { datatype: *datatype, shape: shape.clone(), data: start, bytes: data.len() };
    let owner = Bound::new(py, Received { _bytes: data.clone() })?;
    arrays::view(&memory, owner.into_any())
}

fn is_aligned(datatype: Datatype, data: &Bytes) -> bool {
    datatype.size().is_some_and(|size| (data.as_ptr() as usize).is_multiple_of(size))
}

/// BF16 is the upper half of FP32.
fn widened(data: &[u8]) -> Vec<u8> {
    data.chunks_exact(2).flat_map(|half| [0, 0, half[0], half[1]]).collect()
}

/// The memory in which a response arrived, as long as arrays look at it.
#[pyclass(frozen, module = "alipes._core")]
struct Received {
    _bytes: Bytes,
}
