//! What a worker says, as the server sees it: copied out of the link, and checked.

use alipes_protocol::{CorrelationId, Datatype, Parameter, Shape, copies};
use bytes::Bytes;

use crate::frame::Malformed;
use crate::frame::tensor::check_elements;
use crate::request_arena::Placed;
use crate::rings::Broken;
use crate::tensor::OwnedTensorName;

/// The worker wrote something that no worker of ours writes. It is to be killed, like one that crashed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Violation {
    /// What was seen and what was expected; for the log.
    pub text: String,
}

impl Violation {
    pub(crate) fn new(text: impl Into<String>) -> Violation {
        Violation { text: text.into() }
    }
}

impl From<Malformed> for Violation {
    fn from(Malformed(expected): Malformed) -> Violation {
        Violation::new(format!("a message of the worker is malformed: expected {expected}"))
    }
}

impl From<Broken> for Violation {
    fn from(Broken { head, tail }: Broken) -> Violation {
        Violation::new(format!("a ring of the worker's link is at the positions {head} and {tail}, which cannot be"))
    }
}

/// One message of a worker.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The model is initialized.
    Ready {
        /// It has a say in whether it is ready, and can be asked.
        checks: bool,
    },
    /// Whether the model says that it is ready.
    Checked {
        /// Which question this answers: the worker's word, so it may be none that was asked.
        number: u64,
        /// It does.
        ready: bool,
    },
    /// The model could not be initialized; the worker leaves.
    Failed {
        /// Why.
        text: String,
    },
    /// The model is finalized; the worker leaves.
    Finalized,
    /// The end of one execution.
    Answers {
        /// When; none where the requests did not come so far.
        times: Option<Times>,
        /// Slot and ticket of all requests that were executed together. Some may have been answered before by a
        /// response sender, so that their slot may belong to another request by now; others may be answered later.
        tickets: Vec<(u32, u64)>,
        /// What `execute` returned.
        answers: Vec<Answer>,
    },
    /// One answer, by a response sender.
    Answer(Answer),
    /// Nothing views this memory any more. The number is the worker's word: it may be unknown.
    Released {
        /// Ticket of a request, or lease of a mail.
        lease: u64,
    },
    /// The model asks the server for something.
    Call(Call),
    /// The model wants a call to end, and takes its answers up to the last.
    CallCancelled {
        /// Which call.
        id: u64,
    },
    /// The model no longer waits for a call's answers.
    CallDropped {
        /// Which call.
        id: u64,
    },
    /// For the server's log.
    Log(LogLine),
}

/// When an execution happened, on the clock of [`monotonic_ns`]. The worker's word: not ordered for certain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The worker took the requests.
    pub claimed_ns: u64,
    /// The model's `execute` began.
    pub began_ns: u64,
    /// It ended.
    pub ended_ns: u64,
}

/// An answer to a request. The link has checked that the request was in the worker's hands and not yet at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The request's slot; free again after the last answer.
    pub slot: u32,
    /// The request's ticket.
    pub ticket: u64,
    /// No further answer follows.
    pub last: bool,
    /// Nothing views the request's inputs any more; else [`Message::Released`] follows some day.
    pub released: bool,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// No response: the end of a decoupled request.
    Empty,
    /// None yet: the model wants the request to come again.
    Again,
    /// It failed.
    Error {
        /// Number of the error in the table of errors, up to 7 that of Triton.
        code: u8,
        /// What to tell the caller.
        text: String,
        /// Raised by the model (counts as a failure), rather than returned in a response (counts as a success).
        backend: bool,
    },
    /// A response.
    Response {
        /// Its outputs.
        outputs: Vec<Output>,
        /// Its parameters.
        parameters: Vec<(String, Parameter)>,
    },
}

/// A tensor of a worker.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Which one; an index may be out of the declaration's range.
    pub name: OwnedTensorName,
    /// Element type.
    pub datatype: Datatype,
    /// Sizes; none is negative.
    pub shape: Shape,
    /// Its bytes: as many as datatype and shape say. The elements of `BYTES` have been counted, see
    /// [`Output::resolve`] for those that alias an input.
    pub data: OutputData,
}

impl Output {
    /// The tensor's bytes; `request` is what the worker was given, into which they may point.
    ///
    /// Elements of type `BYTES` are copied out of memory that a worker can write to, and counted, since somebody is
    /// going to read lengths in them. Bytes of other types are lent.
    ///
    /// # Errors
    ///
    /// The bytes do not lie in the request's memory, or do not fit the shape.
    pub fn resolve(&self, request: &Placed) -> Result<Bytes, Violation> {
        let (offset, len) = match &self.data {
            OutputData::Bytes(bytes) => return Ok(bytes.clone()),
            OutputData::Input { offset, len } => (*offset, *len),
        };
        let lent = request.slice(offset, len).ok_or_else(|| {
            let text = format!("an output aliases {len} bytes at {offset}, which are not of its request's inputs");
            Violation::new(text)
        })?;
        if self.datatype != Datatype::Bytes {
            return Ok(lent);
        }
        copies::note(lent.len());
        let private = Bytes::copy_from_slice(&lent);
        check_elements(&self.shape, &private)?;
        Ok(private)
    }
}

/// Where a tensor's bytes are.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputData {
    /// Here. Those of more than 64 KiB are lent by the link: the worker reuses the memory once they are dropped.
    Bytes(Bytes),
    /// In the request's memory: [`Output::resolve`] gets them.
    Input {
        /// Offset in the request arena.
        offset: u64,
        /// How many bytes.
        len: usize,
    },
}

/// A call of a model to the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The worker's number for it.
    pub id: u64,
    /// Ticket of the request being executed; 0 where none is known.
    pub parent: u64,
    /// What it asks for.
    pub kind: CallKind,
}

/// What a model asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum CallKind {
    /// An inference of another model.
    Infer(Box<InferCall>),
    /// Anything else: a model to be loaded, a metric to be counted.
    Control {
        /// Name of the operation.
        name: String,
        /// Its arguments.
        json: String,
    },
}

/// An inference of another model.
#[derive(Clone, Debug, PartialEq)]
pub struct InferCall {
    /// Name of the model.
    pub model: String,
    /// Its version; -1 leaves the choice to the version policy.
    pub version: i64,
    /// Id of the request, or empty.
    pub id: String,
    /// Sequence membership.
    pub correlation_id: CorrelationId,
    /// Triton's request flags.
    pub flags: u32,
    /// Time-out; 0 means none.
    pub timeout_us: u64,
    /// 1 is highest; 0 means the model's default.
    pub priority: u64,
    /// Text of a JSON object, or empty.
    pub parameters: String,
    /// Names of the outputs asked for; empty asks for all.
    pub outputs: Vec<String>,
    /// Inputs; those that alias request memory alias that of [`Call::parent`].
    pub inputs: Vec<Output>,
    /// The caller takes any number of responses.
    pub decoupled: bool,
    /// OpenTelemetry context to hand on.
    pub trace: Option<String>,
}

/// A line for the server's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// 0 error, 1 warning, 2 info, 3 verbose; others are the worker's whim.
    pub level: u8,
    /// The file that said it.
    pub file: String,
    /// The line in it.
    pub line: u32,
    /// What it said.
    pub text: String,
}

/// The clock of all times in the link: nanoseconds on `CLOCK_MONOTONIC`, the same in every process.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
