//! Inputs from Python: any object whose memory lies row by row.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::Arc;

use alipes_protocol::codec::proto::MessageInput;
use alipes_protocol::shape::{element_count, text};
use alipes_protocol::{Datatype, Shape};
use bytes::Bytes;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PySequence, PyTuple};

use super::errors::wrong;
use super::parameters::{self, Parameters};
use crate::worker::{arrays, strings};

/// An input of a request that is being made.
pub struct Input {
    name: PyBackedStr,
    datatype: Datatype,
    shape: Shape,
    elements: InputElements,
    /// In which region of shared memory the elements lie, if not here.
    place: Option<Parameters>,
}

enum InputElements {
    /// Another object's memory.
    Lent(Arc<Buffer>),
    /// Strings, serialized here.
    Own(Vec<u8>),
}

/// Elements of so many bytes are sent from where they lie; fewer are quicker copied.
const LENT_BYTES: usize = 64 * 1024;

/// All inputs: tuples of name, datatype, shape and elements; behind them, where the elements are `None`, parameters
/// that tell their place.
pub fn read(described: &Bound<'_, PySequence>) -> PyResult<Vec<Input>> {
    described.try_iter()?.map(|one| Input::of(&one?)).collect()
}

impl Input {
    fn of(described: &Bound<'_, PyAny>) -> PyResult<Input> {
        let described = described.cast::<PyTuple>()?;
        let name: PyBackedStr = described.get_item(0)?.extract()?;
        let datatype: PyBackedStr = described.get_item(1)?.extract()?;
        let datatype = Datatype::from_name(&datatype)
            .ok_or_else(|| wrong(format!("input '{name}' has the unknown datatype '{datatype}'")))?;
        let sizes = described.get_item(2)?;
        let shape: Shape = sizes.try_iter()?.map(|size| size?.extract::<i64>()).collect::<PyResult<_>>()?;
        let object = described.get_item(3)?;
        if object.is_none() {
            let place = described.get_item(4)?;
            let place = Some(parameters::read(place.cast::<PyDict>()?)?);
            return Ok(Input { name, datatype, shape, elements: InputElements::Own(Vec::new()), place });
        }
        let elements = InputElements::of(datatype, &object)?;
        let input = Input { name, datatype, shape, elements, place: None };
        input.check()?;
        Ok(input)
    }

    fn check(&self) -> PyResult<()> {
        let (name, datatype, sizes) = (&self.name, self.datatype, text(&self.shape));
        let count = element_count(&self.shape).ok_or_else(|| wrong(format!("input '{name}' has the shape {sizes}")))?;
        let expected = datatype.size().map(|size| count.saturating_mul(size));
        let seen = self.bytes().len();
        match expected {
            Some(expected) if expected != seen => {
                Err(wrong(format!("input '{name}' has {seen} bytes, but {datatype} of shape {sizes} takes {expected}")))
            }
            _ => Ok(()),
        }
    }

    /// The elements.
    pub fn bytes(&self) -> &[u8] {
        match &self.elements {
            InputElements::Lent(buffer) => buffer.bytes(),
            InputElements::Own(bytes) => bytes,
        }
    }

    /// As the message takes it.
    pub fn message_input(&self) -> MessageInput<'_> {
        MessageInput {
            name: &self.name,
            datatype: self.datatype.name(),
            shape: &self.shape,
            parameters: self.place.as_deref().unwrap_or_default(),
            data: self.place.is_none().then(|| self.bytes()),
        }
    }

    /// The elements, to be sent without a copy where that is worth it. Nothing should change them meanwhile.
    pub fn lent(&self) -> Option<Bytes> {
        match &self.elements {
            InputElements::Lent(buffer) if buffer.bytes().len() >= LENT_BYTES => {
                Some(Bytes::from_owner(Lender(buffer.clone())))
            }
            _ => None,
        }
    }
}

impl InputElements {
    fn of(datatype: Datatype, object: &Bound<'_, PyAny>) -> PyResult<InputElements> {
        if datatype == Datatype::Bytes
            && let Ok(array) = object.cast::<PyUntypedArray>()
            && !matches!(arrays::elements(array), Some(arrays::Elements::Fixed(Datatype::Uint8)))
        {
            let tidy = arrays::tidy(array)?;
            let bytes = strings::serialize(&tidy).map_err(|error| wrong(error.value(object.py()).to_string()))?;
            debug_assert!(tidy.len() * 4 <= bytes.len(), "each string has a length");
            return Ok(InputElements::Own(bytes));
        }
        Buffer::of(object).map(|buffer| InputElements::Lent(Arc::new(buffer)))
    }
}

/// A buffer that is on its way out.
struct Lender(Arc<Buffer>);

impl AsRef<[u8]> for Lender {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// The memory of an object, which stays where it is until this is dropped.
struct Buffer(Box<ffi::Py_buffer>);

// SAFETY: a buffer is an address and a count of references, which are dropped with the interpreter held.
unsafe impl Send for Buffer {}
// SAFETY: as above; the memory is only read.
unsafe impl Sync for Buffer {}

impl Buffer {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Buffer> {
        const CONTIGUOUS: c_int = ffi::PyBUF_SIMPLE;
        let mut buffer = Box::new(MaybeUninit::<ffi::Py_buffer>::zeroed());
        // SAFETY: the interpreter is held; the buffer is filled in where the call succeeds, and stays where it is,
        // boxed.
        let failed = unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), buffer.as_mut_ptr(), CONTIGUOUS) } != 0;
        if failed {
            return Err(PyErr::fetch(object.py()));
        }
        // SAFETY: just filled in.
        Ok(Buffer(unsafe { buffer.assume_init() }))
    }

    fn bytes(&self) -> &[u8] {
        let length = usize::try_from(self.0.len).unwrap_or(0);
        if length == 0 {
            return &[];
        }
        // SAFETY: the object keeps so many bytes at this address until the buffer is released. A thread that writes to
        // them meanwhile has a mixture of old and new bytes sent, as with any library that reads arrays without the
        // interpreter.
        unsafe { std::slice::from_raw_parts(self.0.buf.cast(), length) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // An interpreter that is going away frees its objects itself.
        // SAFETY: filled in by `of` and released once, with the interpreter held.
        Python::try_attach(|_| unsafe { ffi::PyBuffer_Release(&raw mut *self.0) });
    }
}
