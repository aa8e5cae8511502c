//! Answers to a worker's calls.

use crate::tensor::{TensorRef, ViewedTensor};

/// One answer to a call, from the server to the worker.
#[derive(Clone, Copy, Debug)]
pub struct Mail<'a> {
    /// Which call.
    pub call: u64,
    /// Under which number the worker gives the memory back; never 0. The server keeps the
    /// [`crate::request_arena::Placed`] until [`crate::message::Message::Released`] names it.
    pub lease: u64,
    /// No further answer follows.
    pub last: bool,
    /// What came of the call.
    pub outcome: MailOutcome<'a>,
}

/// What came of a call.
#[derive(Clone, Copy, Debug)]
pub enum MailOutcome<'a> {
    /// It failed.
    Error {
        /// Triton's number of the error.
        code: u8,
        /// What to tell the model.
        text: &'a str,
    },
    /// A response to an inference.
    Response {
        /// Id of the request.
        id: &'a str,
        /// Its outputs.
        outputs: &'a [TensorRef<'a>],
        /// Text of a JSON object, or empty.
        parameters: &'a str,
    },
    /// The answer to a control call.
    Json(&'a str),
    /// A final answer without a response.
    Empty,
}

/// A [`Mail`] as the worker receives it. Once nothing views its tensors any more, the worker sends
/// [`crate::outgoing::OutMessage::Released`] with its lease.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedMail {
    /// Which call.
    pub call: u64,
    /// To be given back.
    pub lease: u64,
    /// No further answer follows.
    pub last: bool,
    /// What came of the call.
    pub outcome: ReceivedOutcome,
}

/// A [`MailOutcome`] as the worker receives it.
#[derive(Clone, Debug, PartialEq)]
pub enum ReceivedOutcome {
    /// It failed.
    Error {
        /// Triton's number of the error.
        code: u8,
        /// What to tell the model.
        text: String,
    },
    /// A response to an inference.
    Response {
        /// Id of the request.
        id: String,
        /// Its outputs, in the request arena.
        outputs: Vec<ViewedTensor>,
        /// Text of a JSON object, or empty.
        parameters: String,
    },
    /// The answer to a control call.
    Json(String),
    /// A final answer without a response.
    Empty,
}
