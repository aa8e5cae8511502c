//! Calls as frames: written by the worker, read by the server.

use super::answer::{Slots, Sources, write_tensors};
use super::{Malformed, Reader, Writer, head};
use crate::message::{Call, CallKind, InferCall};
use crate::outgoing::{OutCall, OutCallKind, OutInferCall};

const INFER: u8 = 0;
const CONTROL: u8 = 1;

pub(crate) fn write<'a, S: Slots>(
    writer: &mut Writer<'a>,
    call: &'a OutCall<'a>,
    slots: &mut S,
) -> Result<(), S::Refusal> {
    writer.u64(call.id);
    writer.u64(call.parent);
    match &call.kind {
        OutCallKind::Infer(call) => {
            writer.u8(INFER);
            write_infer(writer, call, slots)
        }
        OutCallKind::Control { name, json } => {
            writer.u8(CONTROL);
            writer.text(name);
            writer.text(json);
            Ok(())
        }
    }
}

fn write_infer<'a, S: Slots>(
    writer: &mut Writer<'a>,
    call: &'a OutInferCall<'a>,
    slots: &mut S,
) -> Result<(), S::Refusal> {
    writer.text(call.model);
    writer.i64(call.version);
    writer.text(call.id);
    head::write_correlation(writer, call.correlation_id);
    writer.u32(call.flags);
    writer.u64(call.timeout_us);
    writer.u64(call.priority);
    writer.text(call.parameters);
    writer.count(call.outputs.len());
    call.outputs.iter().for_each(|name| writer.text(name));
    writer.bool(call.decoupled);
    writer.optional_text(call.trace);
    write_tensors(writer, &call.inputs, slots)
}

pub(crate) fn read(reader: &mut Reader<'_>, sources: &Sources<'_>) -> Result<Call, Malformed> {
    let (id, parent) = (reader.u64()?, reader.u64()?);
    let kind = match reader.u8()? {
        INFER => CallKind::Infer(Box::new(read_infer(reader, sources)?)),
        CONTROL => CallKind::Control { name: reader.text()?, json: reader.text()? },
        _ => return Err(Malformed("a call of kind 0 or 1")),
    };
    Ok(Call { id, parent, kind })
}

fn read_infer(reader: &mut Reader<'_>, sources: &Sources<'_>) -> Result<InferCall, Malformed> {
    Ok(InferCall {
        model: reader.text()?,
        version: reader.i64()?,
        id: reader.text()?,
        correlation_id: head::read_correlation(reader)?,
        flags: reader.u32()?,
        timeout_us: reader.u64()?,
        priority: reader.u64()?,
        parameters: reader.text()?,
        outputs: reader.list(Reader::text)?,
        decoupled: reader.bool()?,
        trace: reader.optional_text()?,
        inputs: sources.tensors(reader)?,
    })
}
