//! One loaded copy of an ONNX model.

use std::ffi::{CString, c_char};
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use alipes_protocol::{Datatype, Shape, shape};
use bytes::Bytes;
use ort::AsPointer;
use ort::memory::{AllocationDevice, AllocatorType, MemoryInfo, MemoryType};
use ort::ortsys;
use ort::session::{Session, SharedSessionInner};
use smallvec::SmallVec;

use super::check::{Declared, DeclaredPort};
use super::signature::{Port, Signature};
use super::value::{Value, element_type_of};
use crate::{Engine, EngineError, InputView, OutputTensor};

/// Largest output in bytes that is copied out of the library's memory: below it a copy costs less than the bookkeeping
/// that would keep the library's value alive.
const SMALL_OUTPUT_BYTES: usize = 64 * 1024;

/// An instance of an ONNX model: its own session, prepared names, no state between executions.
#[derive(Debug)]
pub struct OnnxSession {
    session: Session,
    memory: MemoryInfo<'static>,
    inputs: Vec<InputPort>,
    outputs: Vec<OutputPort>,
    sizes_tell: bool,
}

#[derive(Debug)]
struct InputPort {
    name: CString,
    /// The model takes a tensor without dimensions where the configuration says one element.
    scalar: bool,
}

#[derive(Debug)]
struct OutputPort {
    name: CString,
    datatype: Datatype,
    /// The shape on the wire of a tensor that has no dimensions.
    scalar: Option<Shape>,
}

/// An output as the library gave it.
struct RawOutput {
    index: usize,
    datatype: Datatype,
    shape: Shape,
    value: Value,
    /// Bytes of it; for strings, number of elements.
    size: usize,
}

impl OnnxSession {
    /// A session whose inputs and outputs go by their positions in `declared`, which fits the signature; `sizes_tell`
    /// where the sizes of its inputs tell how long it takes.
    pub(super) fn new(
        session: Session,
        signature: &Signature,
        declared: &Declared<'_>,
        sizes_tell: bool,
    ) -> Result<OnnxSession, EngineError> {
        let scalar = |ports: &[Port], port: &DeclaredPort<'_>| {
            let model = ports.iter().find(|model| model.name == port.name);
            declared.max_batch_size == 0 && model.is_some_and(|model| model.shape.is_empty())
        };
        let inputs = declared
            .inputs
            .iter()
            .map(|port| Ok(InputPort { name: c_name(port.name)?, scalar: scalar(&signature.inputs, port) }));
        let outputs = declared.outputs.iter().map(|port| {
            let scalar = scalar(&signature.outputs, port).then(|| Shape::from_slice(port.dims));
            Ok(OutputPort { name: c_name(port.name)?, datatype: port.datatype, scalar })
        });
        Ok(OnnxSession {
            memory: MemoryInfo::new(AllocationDevice::CPU, 0, AllocatorType::Device, MemoryType::Default)?,
            inputs: inputs.collect::<Result<_, EngineError>>()?,
            outputs: outputs.collect::<Result<_, EngineError>>()?,
            session,
            sizes_tell,
        })
    }

    /// The library's own run: values in, values out, in the order of `wanted`.
    fn execute(
        &mut self,
        inputs: &[InputView<'_>],
        wanted: &[usize],
    ) -> Result<SmallVec<[Option<Value>; 4]>, EngineError> {
        let mut names = SmallVec::<[*const c_char; 4]>::new();
        let mut values = SmallVec::<[Value; 4]>::new();
        for view in inputs {
            let port = self.inputs.get(view.index).ok_or_else(|| unknown("input", view.index))?;
            let shape = if port.scalar { &[] } else { view.shape };
            names.push(port.name.as_ptr());
            // SAFETY: the values are dropped at the end of this function, while the views' bytes are still borrowed.
            values.push(unsafe { Value::over(&self.memory, view, shape) }?);
        }
        let mut output_names = SmallVec::<[*const c_char; 4]>::new();
        for &index in wanted {
            output_names.push(self.outputs.get(index).ok_or_else(|| unknown("output", index))?.name.as_ptr());
        }
        let mut results: SmallVec<[Option<Value>; 4]> = wanted.iter().map(|_| None).collect();
        // SAFETY: names are C strings owned by `self`; values are transparent over the pointers that the library reads
        // and fills, and all arrays have the lengths given. The session is borrowed mutably, so it runs here alone.
        ortsys![unsafe Run(
            self.session.ptr().cast_mut(),
            ptr::null(),
            names.as_ptr(),
            values.as_ptr().cast(),
            values.len(),
            output_names.as_ptr(),
            output_names.len(),
            results.as_mut_ptr().cast(),
        )?];
        Ok(results)
    }

    fn inspect(&self, index: usize, value: Option<Value>) -> Result<RawOutput, EngineError> {
        let port = &self.outputs[index];
        let broken = |what: &str| EngineError::internal(format!("output '{}' {what}", port.name.to_string_lossy()));
        let value = value.ok_or_else(|| broken("was not given"))?;
        let content = value.content()?;
        if content.element_type != element_type_of(port.datatype) as i32 {
            return Err(broken("has another element type than the model said"));
        }
        let count = shape::element_count(&content.shape);
        let size = count.and_then(|count| count.checked_mul(port.datatype.size().unwrap_or(1)));
        let size = size.ok_or_else(|| broken("is too large"))?;
        let shape = match &port.scalar {
            Some(wire) if content.shape.is_empty() => wire.clone(),
            _ => content.shape,
        };
        Ok(RawOutput { index, datatype: port.datatype, shape, value, size })
    }
}

impl Engine for OnnxSession {
    fn sizes_tell(&self, _bytes: usize) -> bool {
        self.sizes_tell
    }

    fn run(
        &mut self,
        inputs: &[InputView<'_>],
        wanted: &[usize],
        outputs: &mut Vec<OutputTensor>,
    ) -> Result<(), EngineError> {
        let values = self.execute(inputs, wanted)?;
        let raw = wanted.iter().zip(values).map(|(&index, value)| self.inspect(index, value));
        let raw: SmallVec<[RawOutput; 4]> = raw.collect::<Result<_, _>>()?;
        let before = outputs.len();
        let result = take(raw, inputs, &self.session, outputs);
        if result.is_err() {
            outputs.truncate(before);
        }
        result
    }
}

/// Turns the library's values into tensors: small ones copied behind one another into one buffer, strings packed, the
/// others as the slices that they are.
fn take(
    raw: SmallVec<[RawOutput; 4]>,
    inputs: &[InputView<'_>],
    session: &Session,
    outputs: &mut Vec<OutputTensor>,
) -> Result<(), EngineError> {
    let small = |raw: &RawOutput| raw.datatype != Datatype::Bytes && raw.size <= SMALL_OUTPUT_BYTES;
    let mut copies = Vec::with_capacity(raw.iter().filter(|raw| small(raw)).map(|raw| raw.size).sum());
    for raw in raw.iter().filter(|raw| small(raw)) {
        copies.extend_from_slice(raw.value.bytes(raw.size)?);
    }
    let mut copies = Bytes::from(copies);
    for raw in raw {
        let data = if small(&raw) {
            copies.split_to(raw.size)
        } else if raw.datatype == Datatype::Bytes {
            raw.value.strings(raw.size)?.into()
        } else {
            lend(raw.value, raw.size, inputs, session)?
        };
        outputs.push(OutputTensor { index: raw.index, datatype: raw.datatype, shape: raw.shape, data });
    }
    Ok(())
}

/// The value's own memory, kept until the last slice of it is dropped.
fn lend(value: Value, len: usize, inputs: &[InputView<'_>], session: &Session) -> Result<Bytes, EngineError> {
    let bytes = value.bytes(len)?;
    let range = bytes.as_ptr_range();
    // A graph may give an input back as it is; that memory belongs to the caller and ends with the borrow.
    if inputs.iter().any(|view| overlap(&view.data.as_ptr_range(), &range)) {
        return Ok(Bytes::copy_from_slice(bytes));
    }
    Ok(Bytes::from_owner(Lent { value, len, _session: session.inner() }))
}

fn overlap(one: &Range<*const u8>, other: &Range<*const u8>) -> bool {
    one.start < other.end && other.start < one.end
}

/// An output that is still in the library's memory. The value goes before the session whose memory it is.
struct Lent {
    value: Value,
    len: usize,
    _session: Arc<SharedSessionInner>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        // The same call has succeeded before the value was lent, and a value does not change.
        self.value.bytes(self.len).unwrap_or_default()
    }
}

fn c_name(name: &str) -> Result<CString, EngineError> {
    CString::new(name).map_err(|_| EngineError::invalid(format!("the tensor name {name:?} contains a zero byte")))
}

fn unknown(word: &str, index: usize) -> EngineError {
    EngineError::internal(format!("there is no {word} {index}"))
}

impl From<ort::Error> for EngineError {
    /// The library's failure under Triton's text.
    fn from(error: ort::Error) -> EngineError {
        let number = ort::sys::OrtErrorCode::from(error.code()) as i32;
        EngineError::internal(format!("onnx runtime error {number}: {}", error.message()))
    }
}
