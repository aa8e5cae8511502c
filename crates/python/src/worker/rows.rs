//! Calls of a function that takes batches: their documents as columns, and the rows of its result as their responses,
//! without objects for each of them on the way.

use alipes_protocol::call::PREFIX_BYTES;
use alipes_protocol::codec::elements;
use alipes_protocol::codec::json::rows::{self, Argument, Column};
use alipes_protocol::{Datatype, Shape, call};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};

use super::arrays::{self, Elements};
use super::plain_call;
use super::request::InferenceRequest;
use super::response::InferenceResponse;

/// An argument as Python declares it: name, datatype, sizes of a row with -1 for one that varies, and whether its rows
/// become an array; else they become a list.
type Declared = (String, String, Option<Vec<i64>>, bool);

/// Requests that are one call of the function: their positions, and its arguments.
type Rows<'py> = (Vec<usize>, Bound<'py, PyDict>);

/// Reads the documents of a function whose arguments are numbers, texts and arrays of numbers.
#[pyclass(frozen, module = "alipes._core")]
pub struct RowReader {
    reader: rows::RowReader,
    names: Vec<Py<PyString>>,
    stacks: Vec<bool>,
}

/// Requests whose rows have one shape.
struct Group {
    positions: Vec<usize>,
    columns: Vec<Column>,
}

#[pymethods]
impl RowReader {
    #[new]
    fn new(py: Python<'_>, arguments: Vec<Declared>) -> PyResult<RowReader> {
        let names = arguments.iter().map(|(name, ..)| PyString::intern(py, name).unbind()).collect();
        let stacks = arguments.iter().map(|(.., stacks)| *stacks).collect();
        let argument = |(name, datatype, shape, _): Declared| {
            let datatype = Datatype::from_name(&datatype)?;
            Some(Argument { name, datatype, shape: shape.map(Shape::from_vec) })
        };
        let arguments: Option<Vec<Argument>> = arguments.into_iter().map(argument).collect();
        let reader = arguments.and_then(rows::RowReader::new);
        let reader = reader.ok_or_else(|| PyValueError::new_err("there is no reader of such arguments"))?;
        Ok(RowReader { reader, names, stacks })
    }

    /// The requests, or documents, that can be read here, those with rows of one shape together: their positions, and
    /// the arguments of the function. All others are left out.
    fn read<'py>(&self, py: Python<'py>, requests: &Bound<'py, PyList>) -> PyResult<Vec<Rows<'py>>> {
        let mut groups: Vec<Group> = Vec::new();
        let mut row = vec![Column::default(); self.names.len()];
        for (position, request) in requests.iter().enumerate() {
            let read = match request.cast::<PyBytes>() {
                Ok(document) => self.reader.read(document.as_bytes(), &mut row),
                Err(_) => {
                    let request = request.cast::<InferenceRequest>()?.get();
                    plain_call::with_json(request, |document| self.reader.read(document, &mut row))?.flatten()
                }
            };
            if read.is_some() {
                add(&mut groups, position, &row);
            }
        }
        groups.into_iter().map(|group| self.arguments(py, group)).collect()
    }
}

impl RowReader {
    fn arguments<'py>(&self, py: Python<'py>, group: Group) -> PyResult<Rows<'py>> {
        let arguments = PyDict::new(py);
        for (index, Column { shape, bytes }) in group.columns.into_iter().enumerate() {
            let datatype = self.reader.arguments()[index].datatype;
            let column = if self.stacks[index] {
                let sizes: Shape = std::iter::once(group.positions.len() as i64).chain(shape).collect();
                arrays::of_bytes(py, datatype, &sizes, &bytes)?
            } else {
                list(py, datatype, &bytes)?.into_any()
            };
            arguments.set_item(&self.names[index], column)?;
        }
        Ok((group.positions, arguments))
    }
}

/// Adds a row to those of its shape.
fn add(groups: &mut Vec<Group>, position: usize, row: &[Column]) {
    let same = |group: &&mut Group| group.columns.iter().zip(row).all(|(column, one)| column.shape == one.shape);
    match groups.iter_mut().find(same) {
        Some(group) => {
            group.positions.push(position);
            let columns = group.columns.iter_mut().zip(row);
            columns.for_each(|(column, one)| column.bytes.extend_from_slice(&one.bytes));
        }
        None => groups.push(Group { positions: vec![position], columns: row.to_vec() }),
    }
}

/// One Python value for each row: those that `list[float]`, `list[int]`, `list[bool]` and `list[str]` have.
fn list<'py>(py: Python<'py>, datatype: Datatype, bytes: &[u8]) -> PyResult<Bound<'py, PyList>> {
    match datatype {
        Datatype::Fp64 => {
            let values = bytes.as_chunks().0.iter().map(|&bytes| PyFloat::new(py, f64::from_le_bytes(bytes)));
            PyList::new(py, values)
        }
        Datatype::Int64 => {
            let values = bytes.as_chunks().0.iter().map(|&bytes| PyInt::new(py, i64::from_le_bytes(bytes)));
            PyList::new(py, values)
        }
        Datatype::Bool => PyList::new(py, bytes.iter().map(|&byte| PyBool::new(py, byte != 0))),
        Datatype::Bytes => {
            let texts: Vec<_> =
                elements::iter(bytes).map(|text| PyString::from_bytes(py, text)).collect::<PyResult<_>>()?;
            PyList::new(py, texts)
        }
        _ => Err(PyValueError::new_err(format!("no type of Python stands for {datatype}"))),
    }
}

/// The responses that carry the rows of an array as JSON; `None` where the result is no array of so many rows, or its
/// elements have no such form.
///
/// # Errors
///
/// Python has no memory.
pub fn responses(result: &Bound<'_, PyAny>, rows: usize) -> PyResult<Option<Vec<InferenceResponse>>> {
    let py = result.py();
    let array = result.cast_exact::<PyUntypedArray>().ok();
    let Some(array) = array.filter(|array| array.ndim() > 0 && array.shape()[0] == rows && rows > 0) else {
        return Ok(None);
    };
    let (Some(Elements::Fixed(datatype)), true) = (arrays::elements(array), arrays::is_tidy(array)) else {
        return Ok(None);
    };
    let memory = arrays::memory(array, datatype, arrays::element_size(array));
    // SAFETY: the array is tidy and lives while `array` does; the interpreter is held, and nothing of Python's runs
    // until the slice is gone but the making of objects that know nothing of the array.
    let data = unsafe { std::slice::from_raw_parts(memory.data.as_ptr(), memory.bytes) };
    let row_bytes = memory.bytes / rows;
    let mut responses = Vec::with_capacity(rows);
    for row in 0..rows {
        let mut element = Vec::with_capacity(PREFIX_BYTES + 2 * row_bytes + 16);
        element.extend_from_slice(&[0; PREFIX_BYTES]);
        let row = &data[row * row_bytes..(row + 1) * row_bytes];
        if rows::write_row(&mut element, datatype, &memory.shape[1..], row).is_none() {
            return Ok(None);
        }
        let length = call::prefix(element.len() - PREFIX_BYTES);
        element[..PREFIX_BYTES].copy_from_slice(&length);
        responses.push(plain_call::response(py, element, Vec::new())?);
    }
    Ok(Some(responses))
}
