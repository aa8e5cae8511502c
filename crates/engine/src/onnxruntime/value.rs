//! The library's tensor values: made over a caller's bytes, read without a copy.

use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::slice;

use alipes_protocol::codec::elements;
use alipes_protocol::{Datatype, Shape, limits, shape};
use ort::AsPointer;
use ort::memory::{Allocator, MemoryInfo};
use ort::{ortsys, sys};

use crate::{EngineError, InputView};

/// A value of the library, owned.
///
/// Transparent, so that a slice of values is what the library takes as an array of pointers, and a slice of
/// `Option<Value>` what it fills: an absent value is a null pointer.
#[repr(transparent)]
#[derive(Debug)]
pub(super) struct Value(NonNull<sys::OrtValue>);

// SAFETY: a value is reference-counted memory without ties to a thread; the library releases it from any.
unsafe impl Send for Value {}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: the pointer came from the library, is owned by this value alone, and is used no more.
        ortsys![unsafe ReleaseValue(self.0.as_ptr())];
    }
}

/// What a value holds, as plain data.
pub(super) struct Content {
    /// The library's number of the element type.
    pub(super) element_type: i32,
    /// Sizes.
    pub(super) shape: Shape,
}

impl Value {
    /// A tensor over the bytes of `view`, with `shape` in place of the view's own.
    ///
    /// # Safety
    ///
    /// The value must be dropped before the view's bytes are freed or changed.
    pub(super) unsafe fn over(
        memory: &MemoryInfo<'_>,
        view: &InputView<'_>,
        shape: &[i64],
    ) -> Result<Value, EngineError> {
        let Some(size) = view.datatype.size() else { return Value::of_strings(view, shape) };
        let expected = shape::element_count(shape).and_then(|count| count.checked_mul(size));
        if expected != Some(view.data.len()) || !view.is_aligned() {
            return Err(misfit(view, shape));
        }
        let mut value = ptr::null_mut();
        // SAFETY: the bytes are as many as the shape says and aligned for the element type, both checked above, and
        // outlive the value by this function's contract. The library never writes to the inputs of a run: its planner
        // keeps their memory out of reuse.
        ortsys![unsafe CreateTensorWithDataAsOrtValue(
            memory.ptr(),
            view.data.as_ptr().cast_mut().cast(),
            view.data.len(),
            shape.as_ptr(),
            shape.len(),
            element_type_of(view.datatype),
            &mut value,
        )?];
        Value::owned(value)
    }

    /// A tensor of strings: a copy, since the library keeps each string on its own.
    fn of_strings(view: &InputView<'_>, shape: &[i64]) -> Result<Value, EngineError> {
        let count = elements::count(view.data).ok();
        if count.is_none() || count != shape::element_count(shape) {
            return Err(misfit(view, shape));
        }
        let mut value = ptr::null_mut();
        let allocator = Allocator::default();
        // SAFETY: the shape is a valid slice with non-negative sizes, checked above.
        ortsys![unsafe CreateTensorAsOrtValue(
            allocator.ptr().cast_mut(),
            shape.as_ptr(),
            shape.len(),
            element_type_of(view.datatype),
            &mut value,
        )?];
        let value = Value::owned(value)?;
        for (index, element) in elements::iter(view.data).enumerate() {
            value.set_string(index, element)?;
        }
        Ok(value)
    }

    /// Unlike the library's C strings, a string of its own size may hold any byte.
    fn set_string(&self, index: usize, element: &[u8]) -> Result<(), EngineError> {
        let mut room = ptr::null_mut();
        // SAFETY: the value is a tensor of strings; the library checks the index and makes room for the length.
        ortsys![unsafe GetResizedStringTensorElementBuffer(self.0.as_ptr(), index, element.len(), &mut room)?];
        if !element.is_empty() {
            // SAFETY: the library has just made room for as many bytes, in memory of its own.
            unsafe { ptr::copy_nonoverlapping(element.as_ptr(), room.cast(), element.len()) };
        }
        Ok(())
    }

    fn owned(value: *mut sys::OrtValue) -> Result<Value, EngineError> {
        NonNull::new(value).map(Value).ok_or_else(|| EngineError::internal("onnx runtime gave no value"))
    }

    /// Element type and shape.
    pub(super) fn content(&self) -> Result<Content, EngineError> {
        let mut info = ptr::null_mut();
        // SAFETY: the value is valid; the library makes an info that is released below.
        ortsys![unsafe GetTensorTypeAndShape(self.0.as_ptr(), &mut info)?];
        let info = Info(info);
        let mut element_type = MaybeUninit::<i32>::zeroed();
        // SAFETY: the info is valid. The library's enumeration is an `i32`; it is read as one, since a newer library
        // may give a number that ours does not name.
        ortsys![unsafe GetTensorElementType(info.0, element_type.as_mut_ptr().cast())?];
        // SAFETY: zeroed at first, written by the library since.
        let element_type = unsafe { element_type.assume_init() };
        let mut rank = 0;
        // SAFETY: the info is valid.
        ortsys![unsafe GetDimensionsCount(info.0, &mut rank)?];
        if rank > limits::MAX_DIMENSIONS {
            return Err(EngineError::internal(format!("an output has {rank} dimensions")));
        }
        let mut shape = Shape::from_elem(0, rank);
        // SAFETY: the info is valid and the slice has room for all sizes.
        ortsys![unsafe GetDimensions(info.0, shape.as_mut_ptr(), rank)?];
        Ok(Content { element_type, shape })
    }

    /// The bytes of a tensor whose content takes `len` bytes; valid as long as the value.
    pub(super) fn bytes(&self, len: usize) -> Result<&[u8], EngineError> {
        if len == 0 {
            return Ok(&[]);
        }
        let mut data = ptr::null_mut();
        // SAFETY: the value is valid; the library refuses values that are not tensors.
        ortsys![unsafe GetTensorMutableData(self.0.as_ptr(), &mut data)?];
        if data.is_null() {
            return Err(EngineError::internal("onnx runtime gave a tensor without data"));
        }
        // SAFETY: the library holds at least as many bytes as element type and shape take, which is how callers come by
        // `len`; nothing writes to them while the value is borrowed.
        Ok(unsafe { slice::from_raw_parts(data.cast(), len) })
    }

    /// The elements of a tensor of `count` strings, each behind its 32-bit length.
    pub(super) fn strings(&self, count: usize) -> Result<Vec<u8>, EngineError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut total = 0;
        // SAFETY: the value is valid; the library refuses values that are not tensors of strings.
        ortsys![unsafe GetStringTensorDataLength(self.0.as_ptr(), &mut total)?];
        let mut text = vec![0_u8; total];
        let mut starts = vec![0_usize; count];
        // SAFETY: both slices have the lengths given; the library checks them against the tensor.
        ortsys![unsafe GetStringTensorContent(
            self.0.as_ptr(),
            text.as_mut_ptr().cast(),
            total,
            starts.as_mut_ptr(),
            count,
        )?];
        let ends = starts.iter().skip(1).copied().chain([total]);
        let mut packed = Vec::with_capacity(total.saturating_add(count.saturating_mul(4)));
        for (&start, end) in starts.iter().zip(ends) {
            match text.get(start..end) {
                Some(element) if u32::try_from(element.len()).is_ok() => elements::push(&mut packed, element),
                _ => return Err(EngineError::internal("an output has a string of 4 GiB or more")),
            }
        }
        Ok(packed)
    }
}

/// Type and shape of a value, released when it goes.
struct Info(*mut sys::OrtTensorTypeAndShapeInfo);

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: the pointer came from the library, is owned here alone, and is used no more.
        ortsys![unsafe ReleaseTensorTypeAndShapeInfo(self.0)];
    }
}

fn misfit(view: &InputView<'_>, shape: &[i64]) -> EngineError {
    EngineError::internal(format!(
        "input {}: {} bytes at alignment {} are no {} tensor of shape {}",
        view.index,
        view.data.len(),
        1_usize << view.data.as_ptr().addr().trailing_zeros().min(6),
        view.datatype,
        shape::text(shape)
    ))
}

/// The library's word for a datatype.
pub(super) fn element_type_of(datatype: Datatype) -> sys::ONNXTensorElementDataType {
    use sys::ONNXTensorElementDataType as Element;
    match datatype {
        Datatype::Bool => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL,
        Datatype::Uint8 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
        Datatype::Uint16 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16,
        Datatype::Uint32 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32,
        Datatype::Uint64 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64,
        Datatype::Int8 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,
        Datatype::Int16 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16,
        Datatype::Int32 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
        Datatype::Int64 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
        Datatype::Fp16 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
        Datatype::Fp32 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
        Datatype::Fp64 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE,
        Datatype::Bytes => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING,
        Datatype::Bf16 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
    }
}
