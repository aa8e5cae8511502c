//! Answers to calls as frames: written by the server, read by the worker.

use super::request::{View, write_tensors};
use super::{Malformed, Reader, Writer};
use crate::mail::{Mail, MailOutcome, ReceivedMail, ReceivedOutcome};

const ERROR: u8 = 0;
const RESPONSE: u8 = 1;
const JSON: u8 = 2;
const EMPTY: u8 = 3;

/// Writes a mail; `place` says where a tensor lies in the request arena, if it does.
pub(crate) fn write<'a>(writer: &mut Writer<'a>, mail: &Mail<'a>, place: impl FnMut(&'a [u8]) -> Option<u64>) {
    writer.u64(mail.call);
    writer.u64(mail.lease);
    writer.bool(mail.last);
    match mail.outcome {
        MailOutcome::Error { code, text } => {
            writer.u8(ERROR);
            writer.u8(code);
            writer.text(text);
        }
        MailOutcome::Response { id, outputs, parameters } => {
            writer.u8(RESPONSE);
            writer.text(id);
            writer.text(parameters);
            write_tensors(writer, outputs, place);
        }
        MailOutcome::Json(text) => {
            writer.u8(JSON);
            writer.text(text);
        }
        MailOutcome::Empty => writer.u8(EMPTY),
    }
}

pub(crate) fn read(reader: &mut Reader<'_>, view: &View) -> Result<ReceivedMail, Malformed> {
    let (call, lease, last) = (reader.u64()?, reader.u64()?, reader.bool()?);
    let outcome = match reader.u8()? {
        ERROR => ReceivedOutcome::Error { code: reader.u8()?, text: reader.text()? },
        RESPONSE => {
            let (id, parameters) = (reader.text()?, reader.text()?);
            ReceivedOutcome::Response { id, parameters, outputs: reader.list(|reader| view.read(reader))? }
        }
        JSON => ReceivedOutcome::Json(reader.text()?),
        EMPTY => ReceivedOutcome::Empty,
        _ => return Err(Malformed("a mail of kind 0 to 3")),
    };
    reader.end()?;
    Ok(ReceivedMail { call, lease, last, outcome })
}
