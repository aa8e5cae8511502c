//! Everything a worker says as frames: written by the worker, read by the server.

use std::cell::Cell;

use bytes::Bytes;

use super::answer::{self, Lender, Slots, Sources};
use super::{MAX_PRIVATE_BYTES, Malformed, Reader, Writer, call};
use crate::message::{LogLine, Message, Times};
use crate::outgoing::{OutAnswer, OutMessage};

const READY: u8 = 1;
const FAILED: u8 = 2;
const FINALIZED: u8 = 3;
const ANSWERS: u8 = 4;
const ANSWER: u8 = 5;
const RELEASED: u8 = 6;
const CALL: u8 = 7;
const CALL_CANCELLED: u8 = 8;
const LOG: u8 = 9;
const CHECKED: u8 = 10;
const CALL_DROPPED: u8 = 11;

/// Writes a message; large tensors go to `slots` at once.
pub(crate) fn write<'a, S: Slots>(
    writer: &mut Writer<'a>,
    message: &OutMessage<'a>,
    slots: &mut S,
) -> Result<(), S::Refusal> {
    match message {
        OutMessage::Ready { checks } => {
            writer.u8(READY);
            writer.bool(*checks);
        }
        OutMessage::Checked { number, ready } => {
            writer.u8(CHECKED);
            writer.u64(*number);
            writer.bool(*ready);
        }
        OutMessage::Failed { text } => {
            writer.u8(FAILED);
            writer.text(text);
        }
        OutMessage::Finalized => writer.u8(FINALIZED),
        OutMessage::Answers { times, tickets, answers } => {
            writer.u8(ANSWERS);
            write_answers(writer, *times, tickets, answers, slots)?;
        }
        OutMessage::Answer(answer) => {
            writer.u8(ANSWER);
            answer::write(writer, answer, slots)?;
        }
        OutMessage::Released { lease } => {
            writer.u8(RELEASED);
            writer.u64(*lease);
        }
        OutMessage::Call(call) => {
            writer.u8(CALL);
            call::write(writer, call, slots)?;
        }
        OutMessage::CallCancelled { id } => {
            writer.u8(CALL_CANCELLED);
            writer.u64(*id);
        }
        OutMessage::CallDropped { id } => {
            writer.u8(CALL_DROPPED);
            writer.u64(*id);
        }
        OutMessage::Log(line) => {
            writer.u8(LOG);
            write_log(writer, line);
        }
    }
    Ok(())
}

fn write_answers<'a, S: Slots>(
    writer: &mut Writer<'a>,
    times: Option<Times>,
    tickets: &[(u32, u64)],
    answers: &'a [OutAnswer<'a>],
    slots: &mut S,
) -> Result<(), S::Refusal> {
    writer.bool(times.is_some());
    if let Some(times) = times {
        [times.claimed_ns, times.began_ns, times.ended_ns].into_iter().for_each(|time| writer.u64(time));
    }
    writer.count(tickets.len());
    for &(slot, ticket) in tickets {
        writer.u32(slot);
        writer.u64(ticket);
    }
    writer.count(answers.len());
    answers.iter().try_for_each(|answer| answer::write(writer, answer, slots))
}

fn write_log(writer: &mut Writer<'_>, line: &LogLine) {
    writer.u8(line.level);
    writer.text(&line.file);
    writer.u32(line.line);
    writer.text(&line.text);
}

/// Reads a message out of a private copy; large tensors are lent by `slots`.
pub(crate) fn read(frame: &Bytes, slots: &dyn Lender) -> Result<Message, Malformed> {
    let (mut reader, data) = Reader::new(frame)?;
    let reader = &mut reader;
    let sources = Sources { frame, data, slots, private: Cell::new(MAX_PRIVATE_BYTES) };
    let message = match reader.u8()? {
        READY => Message::Ready { checks: reader.bool()? },
        CHECKED => Message::Checked { number: reader.u64()?, ready: reader.bool()? },
        FAILED => Message::Failed { text: reader.text()? },
        FINALIZED => Message::Finalized,
        ANSWERS => Message::Answers {
            times: read_times(reader)?,
            tickets: reader.list(|reader| Ok((reader.u32()?, reader.u64()?)))?,
            answers: reader.list(|reader| sources.answer(reader))?,
        },
        ANSWER => Message::Answer(sources.answer(reader)?),
        RELEASED => Message::Released { lease: reader.u64()? },
        CALL => Message::Call(call::read(reader, &sources)?),
        CALL_CANCELLED => Message::CallCancelled { id: reader.u64()? },
        CALL_DROPPED => Message::CallDropped { id: reader.u64()? },
        LOG => Message::Log(LogLine {
            level: reader.u8()?,
            file: reader.text()?,
            line: reader.u32()?,
            text: reader.text()?,
        }),
        _ => return Err(Malformed("a message of kind 1 to 11")),
    };
    reader.end()?;
    Ok(message)
}

fn read_times(reader: &mut Reader<'_>) -> Result<Option<Times>, Malformed> {
    if !reader.bool()? {
        return Ok(None);
    }
    Ok(Some(Times { claimed_ns: reader.u64()?, began_ns: reader.u64()?, ended_ns: reader.u64()? }))
}
