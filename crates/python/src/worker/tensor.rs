//! `Tensor`: a name and elements, which lie in an array of Python's, in shared memory, or in somebody else's.

use std::ptr::NonNull;

use alipes_protocol::Datatype;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyByteArrayMethods, PyString};

use super::argument;
use super::arrays::{self, Elements, Memory};
use super::errors::{refused, wrong_arguments};
use super::{dlpack, strings};

const SUPPORTED: &str = "Tensor(arg0: str, arg1: numpy.ndarray)";

/// Named elements.
#[pyclass(frozen, module = "c_python_backend_utils")]
pub struct Tensor {
    name: Py<PyString>,
    data: Data,
    /// What `as_numpy` gives: the array that the tensor was made from, or a view that was asked for.
    array: PyOnceLock<Py<PyAny>>,
}

enum Data {
    /// In the memory of this array, wherever that is when it is needed.
    Array(Py<PyUntypedArray>),
    /// Serialized from an array of strings.
    Strings { bytes: Vec<u8>, shape: alipes_protocol::Shape },
    /// In memory that the owner keeps: a request's lease, or a DLPack tensor.
    Borrowed { memory: Memory, owner: Py<PyAny> },
}

impl Tensor {
    /// A tensor over memory that `owner` keeps alive.
    pub fn borrowed(name: Py<PyString>, memory: Memory, owner: Py<PyAny>) -> Tensor {
        Tensor { name, data: Data::Borrowed { memory, owner }, array: PyOnceLock::new() }
    }

    /// The same elements in memory of the tensor's own.
    ///
    /// # Errors
    ///
    /// As [`Tensor::memory`].
    pub fn copied(&self, py: Python<'_>) -> PyResult<Tensor> {
        let memory = self.memory(py)?;
        // SAFETY: the tensor keeps its memory, and nobody writes to it meanwhile.
        let bytes = unsafe { std::slice::from_raw_parts(memory.data.as_ptr(), memory.bytes) };
        // Nothing else has this object, so its bytes stay where they are.
        let owner = PyByteArray::new(py, bytes);
        let data = NonNull::new(owner.data()).unwrap_or(NonNull::dangling());
        Ok(Tensor::borrowed(self.name.clone_ref(py), Memory { data, ..memory }, owner.into_any().unbind()))
    }

    /// A tensor of serialized strings.
    pub fn of_strings(name: Py<PyString>, bytes: Vec<u8>, shape: alipes_protocol::Shape) -> Tensor {
        Tensor { name, data: Data::Strings { bytes, shape }, array: PyOnceLock::new() }
    }

    /// The name, as the object that it is.
    pub fn label<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        self.name.bind(py)
    }

    /// Where the elements lie now; they stay there while the tensor lives and nobody changes its array.
    ///
    /// # Errors
    ///
    /// The array was changed after the tensor was made and its elements no longer lie row by row.
    pub fn memory(&self, py: Python<'_>) -> PyResult<Memory> {
        match &self.data {
            Data::Array(array) => {
                let array = array.bind(py);
                let (Some(Elements::Fixed(datatype)), true) = (arrays::elements(array), arrays::is_tidy(array)) else {
                    return Err(refused("The array of a tensor was given another layout or type."));
                };
                Ok(arrays::memory(array, datatype, datatype.size().unwrap_or_default()))
            }
            Data::Strings { bytes, shape } => Ok(Memory {
                datatype: Datatype::Bytes,
                shape: shape.clone(),
                data: std::ptr::NonNull::from(bytes.as_slice()).cast(),
                bytes: bytes.len(),
            }),
            Data::Borrowed { memory, .. } => Ok(memory.clone()),
        }
    }

    /// An object that keeps the elements alive and is no part of what models can change.
    pub fn owner(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        match &self.data {
            Data::Array(array) => Some(array.clone_ref(py).into_any()),
            Data::Strings { .. } => None,
            Data::Borrowed { owner, .. } => Some(owner.clone_ref(py)),
        }
    }

    fn make_array<'py>(&self, py: Python<'py>, memory: &Memory, owner: &Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match memory.datatype {
            Datatype::Bf16 => Err(refused(
                "Tensor dtype is BF16 and cannot be converted to NumPy. Use to_dlpack() and from_dlpack() instead.",
            )),
            Datatype::Bytes => {
                // SAFETY: the owner keeps the memory; other processes of the server write only before they hand it
                // over.
                let bytes = unsafe { std::slice::from_raw_parts(memory.data.as_ptr(), memory.bytes) };
                strings::array(py, &memory.shape, bytes)
            }
            _ => arrays::view(memory, owner.bind(py).clone()),
        }
    }
}

#[pymethods]
impl Tensor {
    #[new]
    fn new(name: &Bound<'_, PyAny>, ndarray: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        // All types are looked at before any value, as Triton's binding does.
        let name = argument::text(name).ok_or_else(|| wrong_arguments(SUPPORTED, name))?;
        let array = ndarray.cast::<PyUntypedArray>().map_err(|_| wrong_arguments(SUPPORTED, ndarray))?;
        let name = checked_name(&name)?;
        let elements = arrays::elements(array).ok_or_else(|| refused("NumPy dtype is not supported."))?;
        let array = arrays::tidy(array)?;
        if let Elements::Fixed(_) = elements {
            return Ok(Tensor { name, data: Data::Array(array.unbind()), array: PyOnceLock::new() });
        }
        let shape = array.shape().iter().map(|size| *size as i64).collect();
        let data = Data::Strings { bytes: strings::serialize(&array)?, shape };
        let made_from = PyOnceLock::new();
        let _ = made_from.set(ndarray.py(), array.unbind().into_any());
        Ok(Tensor { name, data, array: made_from })
    }

    fn name(&self, py: Python<'_>) -> Py<PyString> {
        self.name.clone_ref(py)
    }

    fn as_numpy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if let Data::Array(array) = &self.data {
            return Ok(array.clone_ref(py).into_any());
        }
        let array = self.array.get_or_try_init(py, || match &self.data {
            Data::Borrowed { memory, owner } => self.make_array(py, memory, owner).map(Bound::unbind),
            // One that was made from an array has it in the cell.
            Data::Strings { bytes, shape } => strings::array(py, shape, bytes).map(Bound::unbind),
            Data::Array(array) => Ok(array.clone_ref(py).into_any()),
        })?;
        Ok(array.clone_ref(py))
    }

    /// Triton's number of the datatype.
    fn triton_dtype(&self, py: Python<'_>) -> PyResult<u8> {
        Ok(self.memory(py)?.datatype as u8 + 1)
    }

    fn shape(&self, py: Python<'_>) -> PyResult<Vec<i64>> {
        Ok(self.memory(py)?.shape.to_vec())
    }

    fn is_cpu(&self) -> bool {
        true
    }

    fn to_dlpack<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let memory = slf.get().memory(slf.py())?;
        dlpack::export(memory, slf.as_any())
    }

    #[pyo3(signature = (stream = None))]
    fn __dlpack__<'py>(slf: &Bound<'py, Self>, stream: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let _ = stream;
        Self::to_dlpack(slf)
    }

    fn __dlpack_device__(&self) -> (i32, i64) {
        dlpack::CPU
    }

    #[staticmethod]
    fn from_dlpack(name: &Bound<'_, PyAny>, tensor: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        let name = checked_name(name.cast().map_err(|_| wrong_arguments(SUPPORTED, name))?)?;
        let (memory, owner) = dlpack::import(tensor)?;
        Ok(Tensor::borrowed(name, memory, owner))
    }
}

fn checked_name(name: &Bound<'_, PyString>) -> PyResult<Py<PyString>> {
    if name.is_empty()? {
        return Err(refused("Tensor name cannot be an empty string."));
    }
    Ok(name.clone().unbind())
}
