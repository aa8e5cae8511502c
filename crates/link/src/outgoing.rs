//! What a worker says, as it says it: borrowed, and copied into the link once.

use alipes_protocol::{CorrelationId, Datatype, Parameter, Shape};

use crate::message::{LogLine, Times};
use crate::tensor::TensorName;

/// A message from the worker to the server.
#[derive(Clone, Debug)]
pub enum OutMessage<'a> {
    /// The model is initialized.
    Ready {
        /// It can be asked whether it is ready.
        checks: bool,
    },
    /// Whether the model says that it is ready.
    Checked {
        /// Which question this answers.
        number: u64,
        /// It does.
        ready: bool,
    },
    /// The model could not be initialized.
    Failed {
        /// Why.
        text: &'a str,
    },
    /// The model is finalized.
    Finalized,
    /// The end of one execution.
    Answers {
        /// When.
        times: Option<Times>,
        /// Slot and ticket of all requests that were executed together.
        tickets: &'a [(u32, u64)],
        /// Answers to those of them that are answered now.
        answers: &'a [OutAnswer<'a>],
    },
    /// One answer, by a response sender.
    Answer(&'a OutAnswer<'a>),
    /// Nothing views this memory any more.
    Released {
        /// Ticket of a request, or lease of a mail.
        lease: u64,
    },
    /// The model asks the server for something.
    Call(&'a OutCall<'a>),
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
    Log(&'a LogLine),
}

/// An answer to a request.
#[derive(Clone, Debug)]
pub struct OutAnswer<'a> {
    /// The request's slot.
    pub slot: u32,
    /// The request's ticket.
    pub ticket: u64,
    /// No further answer follows.
    pub last: bool,
    /// Nothing views the request's inputs any more.
    pub released: bool,
    /// What came of it.
    pub outcome: OutOutcome<'a>,
}

/// What came of a request.
#[derive(Clone, Debug)]
pub enum OutOutcome<'a> {
    /// No response: the end of a decoupled request.
    Empty,
    /// None yet: the model wants the request to come again.
    Again,
    /// It failed.
    Error {
        /// Number of the error in the table of errors, up to 7 that of Triton.
        code: u8,
        /// What to tell the caller.
        text: &'a str,
        /// Raised by the model, rather than returned in a response.
        backend: bool,
    },
    /// A response.
    Response {
        /// Its outputs.
        outputs: Vec<OutTensor<'a>>,
        /// Its parameters.
        parameters: &'a [(String, Parameter)],
    },
}

/// A tensor of the worker.
#[derive(Clone, Debug)]
pub struct OutTensor<'a> {
    /// Which one.
    pub name: TensorName<'a>,
    /// Element type.
    pub datatype: Datatype,
    /// Sizes.
    pub shape: Shape,
    /// Its bytes.
    pub data: OutData<'a>,
}

/// Where a tensor's bytes are.
#[derive(Clone, Copy, Debug)]
pub enum OutData<'a> {
    /// In the worker's memory; sending copies them once.
    Bytes(&'a [u8]),
    /// In the request arena; only where nothing in the worker can write to them any more.
    Input {
        /// Offset in the request arena.
        offset: u64,
        /// How many bytes.
        len: usize,
    },
}

impl OutData<'_> {
    /// How many bytes.
    pub fn len(&self) -> usize {
        match self {
            OutData::Bytes(bytes) => bytes.len(),
            OutData::Input { len, .. } => *len,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A call to the server.
#[derive(Clone, Debug)]
pub struct OutCall<'a> {
    /// The worker's number for it.
    pub id: u64,
    /// Ticket of the request being executed; 0 where none is known.
    pub parent: u64,
    /// What it asks for.
    pub kind: OutCallKind<'a>,
}

/// What a call asks for.
#[derive(Clone, Debug)]
pub enum OutCallKind<'a> {
    /// An inference of another model.
    Infer(OutInferCall<'a>),
    /// Anything else.
    Control {
        /// Name of the operation.
        name: &'a str,
        /// Its arguments.
        json: &'a str,
    },
}

/// An inference of another model. The fields are those of [`crate::message::InferCall`].
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields are explained where the server sees them")]
pub struct OutInferCall<'a> {
    pub model: &'a str,
    pub version: i64,
    pub id: &'a str,
    pub correlation_id: &'a CorrelationId,
    pub flags: u32,
    pub timeout_us: u64,
    pub priority: u64,
    pub parameters: &'a str,
    pub outputs: Vec<&'a str>,
    pub inputs: Vec<OutTensor<'a>>,
    pub decoupled: bool,
    pub trace: Option<&'a str>,
}

/// A message that no link can carry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// More bytes than the memory for responses has.
    #[error(
        "a message of {bytes} bytes does not fit the link to the server, which carries at most {limit}: send less at a time"
    )]
    TooLarge {
        /// Bytes of the message or of one of its tensors.
        bytes: usize,
        /// Most that can be sent.
        limit: usize,
    },
}
