//! Requests as frames: written by the server, read by the worker.

use super::tensor::{self, Place};
use super::{Malformed, Reader, Writer, head};
use crate::request::{Request, RequestHead};
use crate::tensor::{TensorRef, ViewedTensor};

/// Writes a request. `place` says where an input lies in the request arena, if it does.
pub(crate) fn write<'a>(
    writer: &mut Writer<'a>,
    request: &RequestHead<'_>,
    inputs: &[TensorRef<'a>],
    place: impl FnMut(&'a [u8]) -> Option<u64>,
) {
    writer.text(request.id);
    head::write_correlation(writer, request.correlation_id);
    writer.u32(request.flags);
    writer.u64(request.timeout_us);
    writer.u64(request.priority);
    writer.text(request.parameters);
    writer.count(request.outputs.len());
    request.outputs.iter().for_each(|&output| writer.u16(output));
    writer.optional_text(request.trace);
    write_tensors(writer, inputs, place);
}

/// Reads a request. The worker end that claimed it fills in its slot, ticket, rows and time.
pub(crate) fn read(reader: &mut Reader<'_>, view: &View) -> Result<Request, Malformed> {
    let request = Request {
        slot: 0,
        ticket: 0,
        rows: 0,
        claimed_ns: 0,
        id: reader.text()?,
        correlation_id: head::read_correlation(reader)?,
        flags: reader.u32()?,
        timeout_us: reader.u64()?,
        priority: reader.u64()?,
        parameters: reader.text()?,
        outputs: reader.list(Reader::u16)?,
        trace: reader.optional_text()?,
        inputs: reader.list(|reader| view.read(reader))?,
    };
    reader.end()?;
    Ok(request)
}

/// Tensors that lie in the arena, aligned for their elements, are named by their offset; others are copied into the
/// frame.
pub(crate) fn write_tensors<'a>(
    writer: &mut Writer<'a>,
    tensors: &[TensorRef<'a>],
    mut place: impl FnMut(&'a [u8]) -> Option<u64>,
) {
    writer.count(tensors.len());
    for tensor in tensors {
        let len = tensor.data.len() as u64;
        let element = tensor.datatype.size().unwrap_or(1) as u64;
        let place = match place(tensor.data).filter(|offset| offset.is_multiple_of(element)) {
            Some(offset) => Place::Requests { offset, len },
            None => Place::Frame { offset: writer.tensor(tensor.data), len },
        };
        tensor::write(writer, tensor.name, tensor.datatype, tensor.shape, place);
    }
}

/// How a worker sees the tensors of a frame.
pub(crate) struct View {
    /// Where the frame's first tensor lies in the request arena.
    pub data: u64,
    /// Length of the request arena.
    pub arena_len: u64,
}

impl View {
    pub fn read(&self, reader: &mut Reader<'_>) -> Result<ViewedTensor, Malformed> {
        let head = tensor::read(reader)?;
        let (offset, len) = match head.place {
            Place::Frame { offset, len } => (self.data.checked_add(offset), len),
            Place::Requests { offset, len } => (Some(offset), len),
            Place::Responses { .. } => return Err(Malformed("a tensor in the request arena")),
        };
        let outside = Malformed("a tensor within the request arena");
        let offset = offset.ok_or(outside)?;
        if offset.checked_add(len).is_none_or(|end| end > self.arena_len) {
            return Err(outside);
        }
        let len = usize::try_from(len).map_err(|_| outside)?;
        Ok(ViewedTensor { name: head.name, datatype: head.datatype, shape: head.shape, offset, len })
    }
}
