//! Answers as frames: written by the worker, read by the server.

use std::cell::Cell;

use alipes_protocol::Datatype;
use alipes_protocol::error::TABLE;
use bytes::Bytes;

use super::tensor::{self, Place};
use super::{INLINE_BYTES, Malformed, Reader, Writer, head};
use crate::message::{Answer, Outcome, Output, OutputData};
use crate::outgoing::{OutAnswer, OutData, OutOutcome, OutTensor};

const EMPTY: u8 = 0;
const ERROR: u8 = 1;
const RESPONSE: u8 = 2;
const AGAIN: u8 = 3;

/// The response arena as the worker fills it.
pub(crate) trait Slots {
    /// Why a tensor finds no place.
    type Refusal;

    /// Copies a large tensor into a slot of its own; gives its offset in the response arena.
    fn place(&mut self, bytes: &[u8]) -> Result<u64, Self::Refusal>;

    /// So many bytes of `BYTES` tensors are going to be copied by the server.
    fn count_private(&mut self, len: usize) -> Result<(), Self::Refusal>;
}

/// The response arena as the server reads it.
pub(crate) trait Lender {
    /// The bytes of a slot, which goes back once they are dropped; a copy of them where they are to be private.
    fn lend(&self, offset: u64, len: u64, private: bool) -> Result<Bytes, Malformed>;
}

pub(crate) fn write<'a, S: Slots>(
    writer: &mut Writer<'a>,
    answer: &'a OutAnswer<'a>,
    slots: &mut S,
) -> Result<(), S::Refusal> {
    writer.u32(answer.slot);
    writer.u64(answer.ticket);
    writer.bool(answer.last);
    writer.bool(answer.released);
    match &answer.outcome {
        OutOutcome::Empty => writer.u8(EMPTY),
        OutOutcome::Again => writer.u8(AGAIN),
        OutOutcome::Error { code, text, backend } => {
            writer.u8(ERROR);
            writer.u8(*code);
            writer.bool(*backend);
            writer.text(text);
        }
        OutOutcome::Response { outputs, parameters } => {
            writer.u8(RESPONSE);
            writer.count(parameters.len());
            parameters.iter().for_each(|parameter| head::write_parameter(writer, parameter));
            write_tensors(writer, outputs, slots)?;
        }
    }
    Ok(())
}

pub(crate) fn write_tensors<'a, S: Slots>(
    writer: &mut Writer<'a>,
    tensors: &[OutTensor<'a>],
    slots: &mut S,
) -> Result<(), S::Refusal> {
    writer.count(tensors.len());
    for tensor in tensors {
        if tensor.datatype == Datatype::Bytes {
            slots.count_private(tensor.data.len())?;
        }
        let place = match tensor.data {
            OutData::Input { offset, len } => Place::Requests { offset, len: len as u64 },
            OutData::Bytes(bytes) if bytes.len() <= INLINE_BYTES => {
                Place::Frame { offset: writer.tensor(bytes), len: bytes.len() as u64 }
            }
            OutData::Bytes(bytes) => Place::Responses { offset: slots.place(bytes)?, len: bytes.len() as u64 },
        };
        tensor::write(writer, tensor.name, tensor.datatype, &tensor.shape, place);
    }
    Ok(())
}

/// Where the server takes the tensors of a message from.
pub(crate) struct Sources<'a> {
    /// The message, in private memory.
    pub frame: &'a Bytes,
    /// Where its first tensor begins.
    pub data: usize,
    pub slots: &'a dyn Lender,
    /// Bytes that may yet be copied beside the frame.
    pub private: Cell<u64>,
}

impl Sources<'_> {
    pub fn answer(&self, reader: &mut Reader<'_>) -> Result<Answer, Malformed> {
        let (slot, ticket) = (reader.u32()?, reader.u64()?);
        let (last, released) = (reader.bool()?, reader.bool()?);
        let outcome = match reader.u8()? {
            EMPTY => Outcome::Empty,
            AGAIN => Outcome::Again,
            ERROR => self.error(reader)?,
            RESPONSE => {
                let parameters = reader.list(head::read_parameter)?;
                Outcome::Response { parameters, outputs: self.tensors(reader)? }
            }
            _ => return Err(Malformed("an outcome of kind 0 to 3")),
        };
        Ok(Answer { slot, ticket, last, released, outcome })
    }

    fn error(&self, reader: &mut Reader<'_>) -> Result<Outcome, Malformed> {
        let (code, backend, text) = (reader.u8()?, reader.bool()?, reader.text()?);
        if usize::from(code) >= TABLE.len() {
            return Err(Malformed("an error code of the table"));
        }
        Ok(Outcome::Error { code, text, backend })
    }

    pub fn tensors(&self, reader: &mut Reader<'_>) -> Result<Vec<Output>, Malformed> {
        reader.list(|reader| self.tensor(reader))
    }

    fn tensor(&self, reader: &mut Reader<'_>) -> Result<Output, Malformed> {
        let head = tensor::read(reader)?;
        let of_bytes = head.datatype == Datatype::Bytes;
        if of_bytes {
            self.spend(head.place.len())?;
        }
        let data = match head.place {
            Place::Requests { offset, len } => {
                let len = usize::try_from(len).map_err(|_| Malformed("a tensor that memory can hold"))?;
                OutputData::Input { offset, len }
            }
            Place::Frame { offset, len } => OutputData::Bytes(self.inline(offset, len)?),
            Place::Responses { offset, len } => OutputData::Bytes(self.slots.lend(offset, len, of_bytes)?),
        };
        if let (true, OutputData::Bytes(bytes)) = (of_bytes, &data) {
            tensor::check_elements(&head.shape, bytes)?;
        }
        Ok(Output { name: head.name, datatype: head.datatype, shape: head.shape, data })
    }

    fn spend(&self, len: u64) -> Result<(), Malformed> {
        let left = self.private.get().checked_sub(len).ok_or(Malformed("at most 2 GiB of BYTES tensors"))?;
        self.private.set(left);
        Ok(())
    }

    fn inline(&self, offset: u64, len: u64) -> Result<Bytes, Malformed> {
        let outside = Malformed("a tensor within its frame");
        let begin = usize::try_from(offset).ok().and_then(|offset| self.data.checked_add(offset)).ok_or(outside)?;
        let end = usize::try_from(len).ok().and_then(|len| begin.checked_add(len)).ok_or(outside)?;
        if end > self.frame.len() {
            // A tensor without bytes may lie behind a frame without data.
            return if len == 0 { Ok(Bytes::new()) } else { Err(outside) };
        }
        Ok(self.frame.slice(begin..end))
    }
}
