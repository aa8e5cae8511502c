//! Requests and answers as bytes, for both protocols.

use std::time::Instant;

use alipes_protocol::codec::proto::Reply;
use bytes::Bytes;

use crate::error::ClientError;

/// What is done with a path, over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Only looks.
    Get,
    /// Brings something.
    Post,
}

/// A request, encoded.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// gRPC: the method. HTTP: the path, behind the target's prefix.
    pub path: String,
    /// HTTP only.
    pub verb: Verb,
    /// HTTP only: bytes of the JSON in front of binary tensors.
    pub json_length: Option<usize>,
    /// The body, in the pieces that it is made of.
    pub pieces: Vec<Bytes>,
    /// Whether an inference is asked for: its answer is read as one.
    pub infer: bool,
    /// The id of its sequence, as the header that routes it says it.
    pub sequence: Option<String>,
    /// Headers of this request alone, behind those of the target.
    pub headers: Vec<(String, String)>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// To an inference.
    Reply(Box<Reply>),
    /// To anything else: gRPC's message, HTTP's body.
    Body(Bytes),
}

/// An answer as it came, and when.
#[derive(Clone, Debug)]
pub struct Received {
    /// gRPC's message, HTTP's body.
    pub body: Bytes,
    /// When the last byte of the request had been handed to the system; over gRPC, to the connection.
    pub sent: Instant,
    /// When the first bytes of the answer were there.
    pub first: Instant,
    /// When the last ones were.
    pub last: Instant,
}

/// gRPC's message as an answer.
///
/// # Errors
/// What is no response to an inference where one was asked for.
pub fn read(message: Bytes, infer: bool) -> Result<Incoming, ClientError> {
    if !infer {
        return Ok(Incoming::Body(message));
    }
    let reply = Reply::decode(message).map_err(|error| ClientError::broken(error.message))?;
    Ok(Incoming::Reply(Box::new(reply)))
}
