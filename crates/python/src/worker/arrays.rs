//! numpy's C interface: what an array's memory is, and arrays over memory of ours.

use std::ffi::{c_char, c_int, c_long};
use std::ptr::{NonNull, null_mut};

use alipes_protocol::{Datatype, Shape};
use numpy::npyffi::{
    _PyArray_GET_ITEM_DATA, _PyDataType_GET_ITEM_DATA, NPY_ARRAY_ALIGNED, NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_NOTSWAPPED,
    NPY_ARRAY_WRITEABLE, NPY_TYPES, NpyTypes, PY_ARRAY_API, PyArrayObject_fields, PyDataType_ELSIZE, get_type_object,
    npy_intp,
};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use smallvec::SmallVec;

/// Where a tensor's elements lie, row by row and little-endian.
#[derive(Clone)]
pub struct Memory {
    pub datatype: Datatype,
    pub shape: Shape,
    pub data: NonNull<u8>,
    pub bytes: usize,
}

// SAFETY: an address is a number like any other; code that reads through it holds what keeps the memory alive.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// What the elements of an array are.
pub enum Elements {
    /// Of a fixed size, with a datatype of their own.
    Fixed(Datatype),
    /// Pointers to Python objects.
    Objects,
    /// Byte strings of a fixed length, filled up with zeros.
    Strings,
}

/// Imports numpy, so that a missing one is an exception here and no panic later.
pub fn prepare(py: Python<'_>) -> PyResult<()> {
    py.import("numpy").map(drop)
}

/// `None` where no datatype stands for numpy's.
pub fn elements(array: &Bound<'_, PyUntypedArray>) -> Option<Elements> {
    const LONG_HAS_64_BITS: bool = size_of::<c_long>() == 8;
    // SAFETY: the array and its type live while `array` does, and the interpreter is held.
    let number = unsafe { (*_PyDataType_GET_ITEM_DATA((*fields(array)).descr)).type_num };
    let datatype = match number {
        n if n == NPY_TYPES::NPY_FLOAT as c_int => Datatype::Fp32,
        n if n == NPY_TYPES::NPY_LONG as c_int && LONG_HAS_64_BITS => Datatype::Int64,
        n if n == NPY_TYPES::NPY_INT as c_int => Datatype::Int32,
        n if n == NPY_TYPES::NPY_DOUBLE as c_int => Datatype::Fp64,
        n if n == NPY_TYPES::NPY_UBYTE as c_int => Datatype::Uint8,
        n if n == NPY_TYPES::NPY_HALF as c_int => Datatype::Fp16,
        n if n == NPY_TYPES::NPY_BOOL as c_int => Datatype::Bool,
        n if n == NPY_TYPES::NPY_BYTE as c_int => Datatype::Int8,
        n if n == NPY_TYPES::NPY_SHORT as c_int => Datatype::Int16,
        n if n == NPY_TYPES::NPY_LONGLONG as c_int => Datatype::Int64,
        n if n == NPY_TYPES::NPY_USHORT as c_int => Datatype::Uint16,
        n if n == NPY_TYPES::NPY_UINT as c_int => Datatype::Uint32,
        n if n == NPY_TYPES::NPY_ULONG as c_int && LONG_HAS_64_BITS => Datatype::Uint64,
        n if n == NPY_TYPES::NPY_ULONGLONG as c_int => Datatype::Uint64,
        n if n == NPY_TYPES::NPY_OBJECT as c_int => return Some(Elements::Objects),
        n if n == NPY_TYPES::NPY_STRING as c_int => return Some(Elements::Strings),
        _ => return None,
    };
    Some(Elements::Fixed(datatype))
}

/// numpy's type of a datatype's elements; `None` where numpy has none.
fn kind(datatype: Datatype) -> Option<NPY_TYPES> {
    Some(match datatype {
        Datatype::Bool => NPY_TYPES::NPY_BOOL,
        Datatype::Uint8 => NPY_TYPES::NPY_UBYTE,
        Datatype::Uint16 => NPY_TYPES::NPY_USHORT,
        Datatype::Uint32 => NPY_TYPES::NPY_UINT,
        Datatype::Uint64 => NPY_TYPES::NPY_ULONG,
        Datatype::Int8 => NPY_TYPES::NPY_BYTE,
        Datatype::Int16 => NPY_TYPES::NPY_SHORT,
        Datatype::Int32 => NPY_TYPES::NPY_INT,
        Datatype::Int64 => NPY_TYPES::NPY_LONG,
        Datatype::Fp16 => NPY_TYPES::NPY_HALF,
        Datatype::Fp32 => NPY_TYPES::NPY_FLOAT,
        Datatype::Fp64 => NPY_TYPES::NPY_DOUBLE,
        Datatype::Bytes => NPY_TYPES::NPY_OBJECT,
        Datatype::Bf16 => return None,
    })
}

/// The array itself where its elements lie row by row in the machine's order, else a copy that is so.
pub fn tidy<'py>(array: &Bound<'py, PyUntypedArray>) -> PyResult<Bound<'py, PyUntypedArray>> {
    if is_tidy(array) {
        return Ok(array.clone());
    }
    let (py, flags) = (array.py(), NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | NPY_ARRAY_NOTSWAPPED);
    // SAFETY: the array is one; without a type, numpy keeps the array's own in the machine's order; a new reference.
    let copy = unsafe {
        let copy = PY_ARRAY_API.PyArray_CheckFromAny(py, array.as_ptr(), null_mut(), 0, 0, flags, null_mut());
        Bound::from_owned_ptr_or_err(py, copy)?
    };
    Ok(copy.cast_into::<PyUntypedArray>()?)
}

/// Whether elements lie row by row, in the machine's byte order.
pub fn is_tidy(array: &Bound<'_, PyUntypedArray>) -> bool {
    // SAFETY: the array and its type live while `array` does, and the interpreter is held.
    unsafe {
        let fields = fields(array);
        let order = (*_PyDataType_GET_ITEM_DATA((*fields).descr)).byteorder;
        (*fields).flags & NPY_ARRAY_C_CONTIGUOUS != 0 && order != FOREIGN_ORDER
    }
}

/// How numpy writes the byte order that is not this machine's.
const FOREIGN_ORDER: c_char = if cfg!(target_endian = "little") { b'>' as c_char } else { b'<' as c_char };

/// Where the elements of a tidy array lie now: an array can be resized or get another type under our hands.
pub fn memory(array: &Bound<'_, PyUntypedArray>, datatype: Datatype, size: usize) -> Memory {
    // SAFETY: the array lives while `array` does, and the interpreter is held; numpy keeps `nd` sizes.
    unsafe {
        let fields = fields(array);
        let sizes = (0..(*fields).nd as usize).map(|axis| *(*fields).dimensions.add(axis) as i64);
        let shape: Shape = sizes.collect();
        let count: i64 = shape.iter().product();
        let data = NonNull::new((*fields).data.cast()).unwrap_or(NonNull::dangling());
        Memory { datatype, shape, data, bytes: count as usize * size }
    }
}

/// Bytes per element.
pub fn element_size(array: &Bound<'_, PyUntypedArray>) -> usize {
    // SAFETY: the array and its type live while `array` does, and the interpreter is held.
    unsafe { PyDataType_ELSIZE(array.py(), (*fields(array)).descr) as usize }
}

/// An array over memory that `owner` keeps alive; models may write to it.
pub fn view<'py>(memory: &Memory, owner: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = owner.py();
    let array = array(py, memory.datatype, &memory.shape, memory.data.as_ptr())?;
    // SAFETY: the array is new and has no base; numpy takes over the reference to the owner, also where it fails.
    let failed = unsafe { PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), owner.into_ptr()) } != 0;
    if failed { Err(PyErr::fetch(py)) } else { Ok(array) }
}

/// An array with elements of its own: `bytes`, which are as many as datatype and shape say.
pub fn of_bytes<'py>(py: Python<'py>, datatype: Datatype, shape: &[i64], bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    of_parts(py, datatype, shape, std::iter::once(bytes))
}

/// An array with elements of its own: those of the parts, one after the other, which are as many as datatype and shape
/// say.
pub fn of_parts<'py, 'a>(
    py: Python<'py>,
    datatype: Datatype,
    shape: &[i64],
    parts: impl Iterator<Item = &'a [u8]>,
) -> PyResult<Bound<'py, PyAny>> {
    let array = array(py, datatype, shape, null_mut())?;
    let untyped = array.cast::<PyUntypedArray>()?;
    let (bytes, mut end) = (untyped.len() * element_size(untyped), 0);
    for part in parts {
        let begin = end;
        end += part.len();
        assert!(end <= bytes, "an array is filled with what fits");
        // SAFETY: a new array owns `bytes` bytes, the part ends within them, and nobody else knows of the array.
        unsafe { (*fields(untyped)).data.cast::<u8>().add(begin).copy_from_nonoverlapping(part.as_ptr(), part.len()) };
    }
    assert_eq!(end, bytes, "an array is filled as a whole");
    Ok(array)
}

/// Has numpy refuse to write to an array that nobody else knows of yet.
pub fn freeze(array: &Bound<'_, PyAny>) -> PyResult<()> {
    let array = array.cast::<PyUntypedArray>()?;
    // SAFETY: the array lives while the handle does, and the interpreter is held.
    unsafe { (*fields(array)).flags &= !NPY_ARRAY_WRITEABLE };
    Ok(())
}

/// An array of objects. There are as many as the shape says.
pub fn of_objects<'py>(py: Python<'py>, shape: &[i64], objects: Vec<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    let array = array(py, Datatype::Bytes, shape, null_mut())?;
    let untyped = array.cast::<PyUntypedArray>()?;
    assert_eq!(untyped.len(), objects.len(), "an array of objects is filled as a whole");
    // SAFETY: a new array of objects is zeroed, holds as many pointers as its shape says, and owns what is put there.
    unsafe {
        let places = (*fields(untyped)).data.cast::<*mut PyObject>();
        for (index, object) in objects.into_iter().enumerate() {
            places.add(index).write(object.into_ptr());
        }
    }
    Ok(array)
}

/// A new array, over the given memory or, without any, over its own.
fn array<'py>(py: Python<'py>, datatype: Datatype, shape: &[i64], data: *mut u8) -> PyResult<Bound<'py, PyAny>> {
    let kind = kind(datatype).ok_or_else(|| PyValueError::new_err(format!("numpy has no type for {datatype}")))?;
    let mut sizes: SmallVec<[npy_intp; 6]> = shape.iter().map(|size| *size as npy_intp).collect();
    let flags = if data.is_null() { 0 } else { NPY_ARRAY_WRITEABLE };
    // SAFETY: numpy takes over the reference to the type, copies the sizes and finds out the strides; the result is a
    // new reference or null with an exception set.
    unsafe {
        let class = get_type_object(py, NpyTypes::PyArray_Type);
        let descr = PY_ARRAY_API.PyArray_DescrFromType(py, kind as c_int);
        let (count, sizes) = (sizes.len() as c_int, sizes.as_mut_ptr());
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            class,
            descr,
            count,
            sizes,
            null_mut(),
            data.cast(),
            flags,
            null_mut(),
        );
        Bound::from_owned_ptr_or_err(py, array)
    }
}

/// One element of a tidy array of objects, looked up afresh, since code that ran in between may have changed the array.
pub fn object<'py>(array: &Bound<'py, PyUntypedArray>, index: usize) -> Option<Bound<'py, PyAny>> {
    if index >= array.len() || !matches!(elements(array), Some(Elements::Objects)) || !is_tidy(array) {
        return None;
    }
    // SAFETY: just checked; a null pointer stands for `None` in numpy, and the reference is borrowed from the array.
    unsafe {
        let object = *(*fields(array)).data.cast::<*mut PyObject>().add(index);
        Some(
            Bound::from_borrowed_ptr_or_opt(array.py(), object)
                .unwrap_or_else(|| array.py().None().into_bound(array.py())),
        )
    }
}

fn fields(array: &Bound<'_, PyUntypedArray>) -> *mut PyArrayObject_fields {
    // SAFETY: the type was checked when the handle was made.
    unsafe { _PyArray_GET_ITEM_DATA(array.as_array_ptr()) }
}
