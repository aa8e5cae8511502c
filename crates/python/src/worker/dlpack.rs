//! DLPack both ways: tensors handed to other libraries and taken from them without a copy.
//!
//! Source: dmlc/dlpack, `dlpack.h`, and the Python specification of the array API standard.

use std::ffi::{CStr, c_void};
use std::ptr::{NonNull, null_mut};

use alipes_protocol::{Datatype, Shape, shape};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use super::arrays::Memory;
use super::errors::refused;

/// Main memory, as `__dlpack_device__` says it.
pub const CPU: (i32, i64) = (1, 0);
const CUDA: i32 = 2;
const CUDA_HOST: i32 = 3;

const FRESH: &CStr = c"dltensor";
const USED: &CStr = c"used_dltensor";

#[repr(C)]
struct Device {
    kind: i32,
    id: i32,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq)]
struct Element {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLManagedTensor`, its `DLTensor` written out.
#[repr(C)]
struct Managed {
    data: *mut c_void,
    device: Device,
    ndim: i32,
    element: Element,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// What the context of an exported tensor points to: sizes and strides, and a reference to the object that owns the
/// elements. The reference is a bare pointer, since pyo3's drops it by its own count, which is wrong on a thread that
/// has released the interpreter behind pyo3's back.
struct Exported {
    managed: Managed,
    sizes: Shape,
    strides: Shape,
    owner: *mut ffi::PyObject,
}

/// A capsule over a tensor's elements; `owner` lives until the capsule's taker says that it is done.
pub fn export<'py>(memory: Memory, owner: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let element =
        element(memory.datatype).ok_or_else(|| refused("DLPack does not have support for string tensors."))?;
    let (strides, sizes) = (strides(&memory.shape), memory.shape);
    let exported = Box::into_raw(Box::new(Exported {
        managed: Managed {
            data: memory.data.as_ptr().cast(),
            device: Device { kind: CPU.0, id: 0 },
            ndim: sizes.len() as i32,
            element,
            shape: null_mut(),
            strides: null_mut(),
            byte_offset: 0,
            context: null_mut(),
            deleter: Some(delete_exported),
        },
        sizes,
        strides,
        owner: owner.clone().unbind().into_ptr(),
    }));
    // SAFETY: the pointer comes from the box; `managed` lies in it and points only into it and to the owner's memory.
    let capsule = unsafe {
        (*exported).managed.shape = (*exported).sizes.as_mut_ptr();
        (*exported).managed.strides = (*exported).strides.as_mut_ptr();
        (*exported).managed.context = exported.cast();
        ffi::PyCapsule_New((&raw mut (*exported).managed).cast(), FRESH.as_ptr(), Some(delete_untaken))
    };
    // SAFETY: a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(owner.py(), capsule) }
}

/// The taker of the tensor calls this, on any thread, with or without the interpreter.
unsafe extern "C" fn delete_exported(managed: *mut Managed) {
    // SAFETY: the taker calls this once, with what `export` made.
    let owner = unsafe { Box::from_raw((*managed).context.cast::<Exported>()) }.owner;
    // SAFETY: the reference is given up once, here.
    unsafe { release_anywhere(owner) };
}

/// Gives up a reference, on a thread of which nothing is known.
///
/// Python is asked, not pyo3: `Python::try_attach` takes a thread for attached on which pyo3 has called Python, even
/// where a library below (torch, when it frees a tensor) has released the interpreter.
///
/// # Safety
/// The caller owns the reference.
unsafe fn release_anywhere(object: *mut ffi::PyObject) {
    // SAFETY: this may be asked at any time. From the beginning of its end on, the interpreter says no: what is left
    // goes with the process, and no thread may attach any more.
    if unsafe { ffi::Py_IsInitialized() } == 0 {
        return;
    }
    // SAFETY: `PyGILState_Ensure` attaches a thread that is not attached, whichever library has detached it and even if
    // Python has never seen it; on an attached thread it only counts. Where the interpreter begins to end meanwhile,
    // the thread stops here for good. The reference is the caller's.
    unsafe {
        let before = ffi::PyGILState_Ensure();
        ffi::Py_DECREF(object);
        ffi::PyGILState_Release(before);
    }
}

/// The end of a capsule: what nobody took is deleted here.
unsafe extern "C" fn delete_untaken(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with a capsule of ours; a taker has renamed it.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, FRESH.as_ptr()) == 1 {
            delete_exported(ffi::PyCapsule_GetPointer(capsule, FRESH.as_ptr()).cast());
        }
    }
}

/// A tensor of another library; it is given back when the last user is gone.
#[pyclass(frozen, module = "alipes._core")]
struct Imported {
    managed: NonNull<Managed>,
}

// SAFETY: the DLPack specification lets the deleter be called on any thread, and nothing else is done with the pointer.
unsafe impl Send for Imported {}
// SAFETY: as above.
unsafe impl Sync for Imported {}

impl Drop for Imported {
    fn drop(&mut self) {
        // SAFETY: the tensor was taken once, so it is ours to give back, once.
        unsafe {
            if let Some(delete) = self.managed.as_ref().deleter {
                delete(self.managed.as_ptr());
            }
        }
    }
}

/// Takes a tensor out of a capsule, or out of an object that offers one.
pub fn import(tensor: &Bound<'_, PyAny>) -> PyResult<(Memory, Py<PyAny>)> {
    if let Ok(capsule) = tensor.cast::<PyCapsule>() {
        return take(capsule);
    }
    if !tensor.hasattr("__dlpack__")? || !tensor.hasattr("__dlpack_device__")? {
        return Err(refused(
            "Provided tensor is not supported. Tensor must be a DLPack capsule or have `__dlpack__` and \
             `__dlpack_device__` attributes",
        ));
    }
    let (kind, _) = tensor.call_method0("__dlpack_device__")?.extract::<(i32, i64)>()?;
    check_device(kind)?;
    let stream = PyDict::new(tensor.py());
    stream.set_item("stream", tensor.py().None())?;
    let capsule = tensor.call_method("__dlpack__", (), Some(&stream))?;
    let capsule = capsule.cast::<PyCapsule>().map_err(|_| refused("`__dlpack__` did not return a capsule."))?;
    take(capsule)
}

fn check_device(kind: i32) -> PyResult<()> {
    match kind {
        kind if kind == CPU.0 || kind == CUDA_HOST => Ok(()),
        CUDA => {
            Err(refused("DLPack capsule passed pointer to memory allocated on GPU device, when GPU is not available"))
        }
        _ => Err(refused(format!("DLDevice type {kind} is not support by Python backend."))),
    }
}

fn take(capsule: &Bound<'_, PyCapsule>) -> PyResult<(Memory, Py<PyAny>)> {
    let py = capsule.py();
    // SAFETY: a capsule of this name holds a managed tensor, by the specification; it is valid until it is taken.
    let managed = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), FRESH.as_ptr()) != 1 {
            return Err(refused("Expected a DLPack capsule named 'dltensor' that nobody has taken yet."));
        }
        NonNull::new_unchecked(ffi::PyCapsule_GetPointer(capsule.as_ptr(), FRESH.as_ptr()).cast::<Managed>())
    };
    // SAFETY: as above; the borrow ends before the capsule is renamed.
    let memory = memory(unsafe { managed.as_ref() })?;
    // SAFETY: renaming tells the capsule's destructor and every other taker that the tensor is ours now.
    if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), USED.as_ptr()) } != 0 {
        return Err(PyErr::fetch(py));
    }
    Ok((memory, Py::new(py, Imported { managed })?.into_any()))
}

/// Where the elements of a managed tensor lie, if they lie as ours do.
fn memory(managed: &Managed) -> PyResult<Memory> {
    check_device(managed.device.kind)?;
    let seen = managed.element;
    let datatype = Datatype::ALL.into_iter().find(|datatype| element(*datatype) == Some(seen));
    let datatype = datatype.ok_or_else(|| {
        let Element { code, bits, lanes } = seen;
        refused(format!("DLPack data type with code {code}, {bits} bits and {lanes} lanes is not supported."))
    })?;
    let sizes = listed(managed.shape, managed.ndim).unwrap_or_default();
    if listed(managed.strides, managed.ndim).is_some_and(|strides| !is_in_order(&sizes, &strides)) {
        return Err(refused(
            "DLPack tensor is not contiguous. Only contiguous DLPack tensors that are stored in C-Order are supported.",
        ));
    }
    let size = datatype.size().unwrap_or_default();
    let bytes = shape::element_count(&sizes).and_then(|count| count.checked_mul(size));
    let bytes = bytes.ok_or_else(|| refused(format!("DLPack tensor has the shape {}.", shape::text(&sizes))))?;
    let data = managed.data.cast::<u8>().wrapping_add(managed.byte_offset as usize);
    let data = if bytes == 0 {
        NonNull::dangling()
    } else {
        NonNull::new(data).ok_or_else(|| refused("DLPack tensor without data."))?
    };
    Ok(Memory { datatype, shape: sizes, data, bytes })
}

fn listed(values: *const i64, count: i32) -> Option<Shape> {
    let count = usize::try_from(count).ok()?;
    // SAFETY: a pointer that is not null points to `ndim` values, by the specification.
    (!values.is_null()).then(|| (0..count).map(|axis| unsafe { *values.add(axis) }).collect())
}

/// Strides in elements of a tensor that lies row by row.
fn strides(sizes: &[i64]) -> Shape {
    let mut strides: Shape = sizes.iter().map(|_| 1).collect();
    for axis in (1..sizes.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(sizes[axis].max(1));
    }
    strides
}

/// Whether these strides lead through the elements row by row; where a size is one or nothing is there, any do.
fn is_in_order(sizes: &[i64], found: &[i64]) -> bool {
    sizes.contains(&0)
        || sizes.iter().zip(strides(sizes)).zip(found).all(|((size, due), found)| *size == 1 || due == *found)
}

/// DLPack's codes: 0 signed, 1 unsigned, 2 floating-point, 4 bfloat, 6 truth value.
fn element(datatype: Datatype) -> Option<Element> {
    let code = match datatype {
        Datatype::Int8 | Datatype::Int16 | Datatype::Int32 | Datatype::Int64 => 0,
        Datatype::Uint8 | Datatype::Uint16 | Datatype::Uint32 | Datatype::Uint64 => 1,
        Datatype::Fp16 | Datatype::Fp32 | Datatype::Fp64 => 2,
        Datatype::Bf16 => 4,
        Datatype::Bool => 6,
        Datatype::Bytes => return None,
    };
    Some(Element { code, bits: datatype.size()? as u8 * 8, lanes: 1 })
}
