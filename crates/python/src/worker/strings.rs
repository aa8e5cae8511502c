//! Strings between numpy and the wire: a 32-bit length, then that many bytes, element after element.

use alipes_protocol::shape;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::arrays::{self, Elements};
use super::errors::refused;

/// The elements of a tidy array of objects or byte strings, as BYTES.
///
/// Bytes stay as they are, text becomes UTF-8, any other object becomes what `str()` says of it. Byte strings of a
/// fixed length lose the zeros that fill them up, as in numpy.
pub fn serialize(array: &Bound<'_, PyUntypedArray>) -> PyResult<Vec<u8>> {
    match arrays::elements(array) {
        Some(Elements::Objects) => serialize_objects(array),
        Some(Elements::Strings) => serialize_strings(array),
        _ => Err(refused("NumPy dtype is not supported.")),
    }
}

fn serialize_objects(array: &Bound<'_, PyUntypedArray>) -> PyResult<Vec<u8>> {
    let mut bytes = Vec::with_capacity(array.len() * 16);
    for index in 0..array.len() {
        let object = arrays::object(array, index);
        let object = object.ok_or_else(|| refused("The array was changed while its elements were read."))?;
        if let Ok(text) = object.cast::<PyString>() {
            put(&mut bytes, text.to_str()?.as_bytes())?;
        } else if let Ok(element) = object.cast::<PyBytes>() {
            put(&mut bytes, element.as_bytes())?;
        } else {
            put(&mut bytes, object.str()?.to_str()?.as_bytes())?;
        }
    }
    Ok(bytes)
}

fn serialize_strings(array: &Bound<'_, PyUntypedArray>) -> PyResult<Vec<u8>> {
    let size = arrays::element_size(array);
    let memory = arrays::memory(array, alipes_protocol::Datatype::Bytes, size);
    let mut bytes = Vec::with_capacity(memory.bytes + array.len() * 4);
    // SAFETY: the array is tidy, so its elements lie one after the other; nothing runs meanwhile that could change it.
    let elements = unsafe { std::slice::from_raw_parts(memory.data.as_ptr(), memory.bytes) };
    for index in 0..array.len() {
        let element = &elements[index * size..(index + 1) * size];
        let end = element.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        put(&mut bytes, &element[..end])?;
    }
    Ok(bytes)
}

fn put(bytes: &mut Vec<u8>, element: &[u8]) -> PyResult<()> {
    let length = u32::try_from(element.len());
    let length =
        length.map_err(|_| refused(format!("A string of {} bytes is longer than BYTES can hold.", element.len())))?;
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(element);
    Ok(())
}

/// The elements of a BYTES tensor, each as `bytes`.
pub fn deserialize<'py>(py: Python<'py>, mut bytes: &[u8]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut elements = Vec::new();
    while !bytes.is_empty() {
        let (element, rest) = split(bytes).ok_or_else(|| {
            refused(format!("The BYTES tensor ends within element {}: {} bytes are left.", elements.len(), bytes.len()))
        })?;
        elements.push(PyBytes::new(py, element).into_any());
        bytes = rest;
    }
    Ok(elements)
}

/// The first element and what follows it.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

/// An array of `bytes` objects in the given shape.
pub fn array<'py>(py: Python<'py>, sizes: &[i64], bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let elements = deserialize(py, bytes)?;
    if shape::element_count(sizes) != Some(elements.len()) {
        let (count, shape) = (elements.len(), shape::text(sizes));
        return Err(refused(format!("The BYTES tensor holds {count} elements, its shape is {shape}.")));
    }
    arrays::of_objects(py, sizes, elements)
}
