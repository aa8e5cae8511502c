//! Responses as JSON, with the outputs that were asked for in binary behind it.

use bytes::Bytes;

use super::write;
use crate::codec::elements;
use crate::shape::element_count;
use crate::{Datatype, InferError, InferResponse, Origin, Parameter, RequestedOutput, Tensor};

/// The parts of an answer's body, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedResponse {
    /// The JSON.
    pub head: Vec<u8>,
    /// Outputs in binary: slices of the response, not copies.
    pub tail: Vec<Bytes>,
    /// There are bytes behind the JSON, so the answer must say where it ends. Empty binary outputs leave none.
    pub binary: bool,
}

/// The response as the request wants it.
///
/// An output that the request named is JSON unless the request said binary; the others, so all of them where it named
/// none, follow `binary_by_default`. One that went into a region of the caller is described, without its data.
///
/// # Errors
///
/// At [`Origin::Model`]: FP16 and BF16 as JSON, and outputs whose bytes do not fit their shape.
pub fn encode_response(
    response: &InferResponse,
    outputs: &[RequestedOutput],
    binary_by_default: bool,
) -> Result<EncodedResponse, InferError> {
    let form = |output: &Tensor| form(output, outputs, binary_by_default);
    let mut encoder = Encoder::default();
    encoder.head.reserve(estimate(response, &form));
    encoder.preamble(&response.id, &response.model_name, response.model_version);
    encoder.parameters(&response.parameters);
    encoder.text(b",\"outputs\":[");
    for (index, output) in response.outputs.iter().enumerate() {
        encoder.separate(index);
        encoder.output(output, form(output)).map_err(|error| error.at(Origin::Model))?;
    }
    encoder.head.extend_from_slice(b"]}");
    Ok(EncodedResponse { binary: !encoder.tail.is_empty(), head: encoder.head, tail: encoder.tail })
}

/// How a request wants an output.
fn form(output: &Tensor, outputs: &[RequestedOutput], binary_by_default: bool) -> Form {
    match outputs.iter().find(|requested| requested.name == output.name) {
        Some(requested) if requested.in_region => Form::Description,
        Some(RequestedOutput { binary: Some(true), .. }) => Form::Binary,
        None if binary_by_default => Form::Binary,
        _ => Form::Json,
    }
}

/// Bytes that the elements of these outputs will take as JSON, roughly.
pub fn text_bytes(response: &InferResponse, outputs: &[RequestedOutput], binary_by_default: bool) -> usize {
    let written = response.outputs.iter().filter(|output| form(output, outputs, binary_by_default) == Form::Json);
    written.map(element_bytes).sum()
}

/// Bytes that the elements of an output will take as JSON, roughly.
pub fn element_bytes(output: &Tensor) -> usize {
    match output.datatype {
        // As doubles most FP32 take 18 to 20 characters and a comma.
        Datatype::Fp32 => output.data.len() / 4 * 21,
        Datatype::Fp64 => output.data.len() / 8 * 21,
        Datatype::Bool | Datatype::Uint8 | Datatype::Int8 => output.data.len() * 6,
        _ => output.data.len() * 2,
    }
}

/// Bytes that the JSON will take, roughly: enough for one allocation in the common cases.
fn estimate(response: &InferResponse, form: &impl Fn(&Tensor) -> Form) -> usize {
    let data = |output: &Tensor| if form(output) == Form::Json { element_bytes(output) } else { 0 };
    let described: usize = response.outputs.iter().map(|output| 128 + data(output)).sum();
    128 + response.id.len() + response.model_name.len() + 64 * response.parameters.len() + described
}

/// How an output is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Binary,
    /// Name, datatype and shape alone.
    Description,
}

/// Writes the JSON, and collects what follows it.
#[derive(Default)]
pub(super) struct Encoder {
    pub(super) head: Vec<u8>,
    tail: Vec<Bytes>,
}

impl Encoder {
    pub(super) fn text(&mut self, text: &[u8]) {
        self.head.extend_from_slice(text);
    }

    /// A comma in front of every item but the first.
    pub(super) fn separate(&mut self, index: usize) {
        if index > 0 {
            self.head.push(b',');
        }
    }

    /// What a document begins with.
    pub(super) fn preamble(&mut self, id: &str, model: &str, version: i64) {
        self.text(b"{");
        if !id.is_empty() {
            self.text(b"\"id\":");
            write::string(&mut self.head, id.as_bytes());
            self.text(b",");
        }
        self.text(b"\"model_name\":");
        write::string(&mut self.head, model.as_bytes());
        self.text(b",\"model_version\":\"");
        write::integer(&mut self.head, version);
        self.text(b"\"");
    }

    pub(super) fn parameters(&mut self, parameters: &[(String, Parameter)]) {
        if !parameters.is_empty() {
            self.text(b",\"parameters\":{");
            for (index, (key, value)) in parameters.iter().enumerate() {
                self.separate(index);
                self.parameter(key, value);
            }
            self.text(b"}");
        }
    }

    /// A tensor of the payload log, whose data may be wrong or too much for JSON.
    pub(super) fn logged(&mut self, tensor: &Tensor, with_data: bool) {
        let begin = self.head.len();
        if with_data && self.output(tensor, Form::Json).is_ok() {
            return;
        }
        self.head.truncate(begin);
        // A description cannot fail.
        let _ = self.output(tensor, Form::Description);
    }

    pub(super) fn parameter(&mut self, key: &str, value: &Parameter) {
        write::string(&mut self.head, key.as_bytes());
        self.text(b":");
        match value {
            Parameter::Bool(value) => self.text(truth(*value)),
            Parameter::Int64(value) => write::integer(&mut self.head, *value),
            Parameter::Double(value) => write::double(&mut self.head, *value),
            Parameter::String(value) => write::string(&mut self.head, value.as_bytes()),
        }
    }

    fn output(&mut self, output: &Tensor, form: Form) -> Result<(), InferError> {
        self.text(b"{\"name\":");
        write::string(&mut self.head, output.name.as_bytes());
        self.text(b",\"datatype\":\"");
        self.text(output.datatype.name().as_bytes());
        self.text(b"\",\"shape\":[");
        for (index, &size) in output.shape.iter().enumerate() {
            self.separate(index);
            write::integer(&mut self.head, size);
        }
        match form {
            Form::Description => self.text(b"]}"),
            Form::Binary => {
                self.text(b"],\"parameters\":{\"binary_data_size\":");
                write::integer(&mut self.head, output.data.len());
                self.text(b"}}");
                if !output.data.is_empty() {
                    self.tail.push(output.data.clone());
                }
            }
            Form::Json => {
                self.text(b"],\"data\":[");
                self.data(output)?;
                self.text(b"]}");
            }
        }
        Ok(())
    }

    /// The elements, with commas between them.
    pub(super) fn data(&mut self, output: &Tensor) -> Result<(), InferError> {
        let data = &output.data;
        match output.datatype {
            Datatype::Fp16 | Datatype::Bf16 => return Err(unsupported(output.datatype)),
            Datatype::Bytes => return self.strings(output),
            _ => check_size(output)?,
        }
        let out = &mut self.head;
        match output.datatype {
            Datatype::Bool => numbers(out, data, |out, [byte]| out.extend_from_slice(truth(byte != 0))),
            Datatype::Uint8 => numbers(out, data, |out, [byte]| write::integer(out, byte)),
            Datatype::Uint16 => numbers(out, data, |out, bytes| write::integer(out, u16::from_le_bytes(bytes))),
            Datatype::Uint32 => numbers(out, data, |out, bytes| write::integer(out, u32::from_le_bytes(bytes))),
            Datatype::Uint64 => numbers(out, data, |out, bytes| write::integer(out, u64::from_le_bytes(bytes))),
            Datatype::Int8 => numbers(out, data, |out, bytes| write::integer(out, i8::from_le_bytes(bytes))),
            Datatype::Int16 => numbers(out, data, |out, bytes| write::integer(out, i16::from_le_bytes(bytes))),
            Datatype::Int32 => numbers(out, data, |out, bytes| write::integer(out, i32::from_le_bytes(bytes))),
            Datatype::Int64 => numbers(out, data, |out, bytes| write::integer(out, i64::from_le_bytes(bytes))),
            Datatype::Fp32 => numbers(out, data, |out, bytes| write::double(out, f32::from_le_bytes(bytes).into())),
            Datatype::Fp64 => numbers(out, data, |out, bytes| write::double(out, f64::from_le_bytes(bytes))),
            Datatype::Fp16 | Datatype::Bf16 | Datatype::Bytes => {}
        }
        Ok(())
    }

    /// As many strings as the shape has elements; bytes beyond them are not looked at.
    fn strings(&mut self, output: &Tensor) -> Result<(), InferError> {
        let count = element_count(&output.shape).ok_or_else(|| mismatch(output))?;
        let mut written = 0;
        for element in elements::iter(&output.data).take(count) {
            self.separate(written);
            write::string(&mut self.head, element);
            written += 1;
        }
        if written == count { Ok(()) } else { Err(mismatch(output)) }
    }
}

/// Writes elements of `SIZE` bytes with commas between them.
#[inline]
fn numbers<const SIZE: usize>(out: &mut Vec<u8>, data: &[u8], write: impl Fn(&mut Vec<u8>, [u8; SIZE])) {
    let (elements, _) = data.as_chunks::<SIZE>();
    for &element in elements {
        write(out, element);
        out.push(b',');
    }
    if !elements.is_empty() {
        out.pop();
    }
}

fn truth(value: bool) -> &'static [u8] {
    if value { b"true" } else { b"false" }
}

fn check_size(output: &Tensor) -> Result<(), InferError> {
    let size = output.datatype.size().unwrap_or(1);
    match element_count(&output.shape).and_then(|count| count.checked_mul(size)) {
        Some(bytes) if bytes == output.data.len() => Ok(()),
        _ => Err(mismatch(output)),
    }
}

fn mismatch(output: &Tensor) -> InferError {
    InferError::internal(format!("output tensor shape does not match size of output for '{}'", output.name))
}

fn unsupported(datatype: Datatype) -> InferError {
    InferError::invalid(format!(
        "sending {datatype} data via JSON is not supported. Please use the binary data format for output"
    ))
}
