//! A request in one pass: the envelope is walked once, numbers go straight into tensors.
//!
//! Every function gives up with `None` at what is wrong or merely unusual (a name given twice, an escape in a name, a
//! shared-memory region, data where Triton would not look at it); the exact way then finds the answer or the error.

use bytes::Bytes;
use compact_str::CompactString;

use super::DecodeContext;
use super::cursor::Cursor;
use super::exact::read_outputs;
use super::fill;
use super::parameters::{self, InputParameters};
use super::parse::{ENVELOPE_DEPTH, skip_space};
use super::value::Value;
use crate::codec::binary::Tail;
use crate::codec::requested;
use crate::limits::REQUEST_MAX_ENTRIES;
use crate::shape::element_count;
use crate::{Datatype, InferRequest, NoRegions, Shape, Tensor};

/// Reads the request where nothing about it is unusual; `tail` is what follows the JSON.
pub(super) fn decode(text: &[u8], tail: Tail, context: DecodeContext<'_>) -> Option<InferRequest> {
    let mut reader = FastReader { cursor: Cursor { text, at: skip_space(text, 0) }, tail, context };
    let request = reader.request()?;
    reader.tail.finish(context.model).ok()?;
    requested::check_names_differ(&request.outputs, &request.id, context.options.release).ok()?;
    (skip_space(text, reader.cursor.at) == text.len()).then_some(request)
}

struct FastReader<'a> {
    cursor: Cursor<'a>,
    tail: Tail,
    context: DecodeContext<'a>,
}

/// Where the data of an input was met.
#[derive(Default)]
enum Data {
    #[default]
    Absent,
    /// In front of the shape or the datatype, at this offset; read when both are known.
    Waiting(usize),
    Read(Vec<u8>),
}

/// What was read of an input so far.
#[derive(Default)]
struct Input<'a> {
    name: Option<CompactString>,
    datatype: Option<Datatype>,
    shape: Option<Shape>,
    parameters: Option<Value<'a>>,
    data: Data,
}

impl<'a> FastReader<'a> {
    fn request(&mut self) -> Option<InferRequest> {
        let mut request = InferRequest::default();
        let mut seen = [false; 4];
        let mut members = self.cursor.open(b'{')?;
        while let Some(name) = self.cursor.next_name(&mut members)? {
            let index = [&b"id"[..], b"parameters", b"inputs", b"outputs"].iter().position(|known| *known == name);
            if let Some(index) = index
                && std::mem::replace(&mut seen[index], true)
            {
                return None;
            }
            match index {
                Some(0) => request.id = self.text()?,
                Some(1) => parameters::read_request(self.cursor.value(1)?, self.context, &mut request).ok()?,
                Some(2) => request.inputs = self.inputs()?,
                Some(_) => {
                    request.outputs = read_outputs(self.cursor.value(1)?, self.context, &mut NoRegions).ok()?;
                }
                None => drop(self.cursor.value(1)?),
            }
        }
        seen[2].then_some(request)
    }

    fn text(&mut self) -> Option<CompactString> {
        let text = self.cursor.string()?;
        self.context.reserve(text.len()).ok()?;
        Some(text.into())
    }

    fn inputs(&mut self) -> Option<Vec<Tensor>> {
        let mut inputs = Vec::with_capacity(1);
        let mut elements = self.cursor.open(b'[')?;
        while self.cursor.next_element(&mut elements)? {
            if inputs.len() == REQUEST_MAX_ENTRIES {
                return None;
            }
            inputs.push(self.input()?);
        }
        Some(inputs)
    }

    fn input(&mut self) -> Option<Tensor> {
        let mut input = Input::default();
        let mut members = self.cursor.open(b'{')?;
        while let Some(name) = self.cursor.next_name(&mut members)? {
            match name {
                b"name" => set(&mut input.name, self.text()?)?,
                b"datatype" => set(&mut input.datatype, Datatype::from_name(self.cursor.string()?)?)?,
                b"shape" => set(&mut input.shape, self.cursor.shape()?)?,
                b"parameters" => set(&mut input.parameters, self.cursor.value(ENVELOPE_DEPTH)?)?,
                b"data" => self.data(&mut input)?,
                _ => drop(self.cursor.value(ENVELOPE_DEPTH)?),
            }
        }
        self.tensor(input)
    }

    /// Reads data that follows its shape and datatype, and steps over other data.
    fn data(&mut self, input: &mut Input<'a>) -> Option<()> {
        let start = self.cursor.at;
        input.data = match (&input.data, input.datatype, &input.shape) {
            (Data::Absent, Some(datatype), Some(shape)) => {
                let (bytes, end) = self.read_data(start, datatype, shape)?;
                self.cursor.at = end;
                Data::Read(bytes)
            }
            (Data::Absent, ..) => {
                self.cursor.value(ENVELOPE_DEPTH)?;
                Data::Waiting(start)
            }
            _ => return None,
        };
        Some(())
    }

    fn read_data(&self, start: usize, datatype: Datatype, shape: &[i64]) -> Option<(Vec<u8>, usize)> {
        let count = element_count(shape).filter(|&count| count > 0)?;
        fill::read(self.cursor.text, start, datatype, count, self.context)
    }

    fn tensor(&mut self, input: Input<'a>) -> Option<Tensor> {
        let (name, datatype, shape) = (input.name?, input.datatype?, input.shape?);
        let parameters = InputParameters::of(input.parameters);
        if parameters.slice(self.context).ok()?.is_some() {
            return None;
        }
        let data = match (input.data, parameters.binary_data_size) {
            (Data::Absent, Some(size)) => self.tail.take(size.as_u64().ok()?, &name, self.context.model).ok()?,
            (Data::Waiting(start), None) => Bytes::from(self.read_data(start, datatype, &shape)?.0),
            (Data::Read(bytes), None) => Bytes::from(bytes),
            _ => return None,
        };
        Some(Tensor { name, datatype, shape, data })
    }
}

/// Fills a field that may be given once.
fn set<T>(field: &mut Option<T>, value: T) -> Option<()> {
    field.replace(value).is_none().then_some(())
}
