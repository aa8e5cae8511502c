//! A request on its way out and what comes back, for both wires.

use std::time::Duration;

use alipes_protocol::codec::proto::Reply;
use bytes::Bytes;

use crate::connection::{Connection, Driver};
use crate::{ClientError, Kind, Target};

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
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// To an inference.
    Reply(Box<Reply>),
    /// To anything else: gRPC's message, HTTP's body.
    Body(Bytes),
}

/// Asks over a connection, or over a new one where there is none, within the limit.
///
/// # Returns
/// The answer, and the connection if it can be used again.
pub async fn exchange(
    target: &Target,
    driver: Driver,
    connection: Option<Connection>,
    request: Outgoing,
    limit: Option<Duration>,
) -> (Result<Incoming, ClientError>, Option<Connection>) {
    let work = attempt(target, driver, connection, request, limit);
    let Some(limit) = limit else { return work.await };
    match tokio::time::timeout(limit, work).await {
        Ok(outcome) => outcome,
        Err(_) => (Err(late(target, limit)), None),
    }
}

async fn attempt(
    target: &Target,
    driver: Driver,
    connection: Option<Connection>,
    request: Outgoing,
    limit: Option<Duration>,
) -> (Result<Incoming, ClientError>, Option<Connection>) {
    let mut usable = connection;
    if let Some(connection) = &mut usable
        && !connection.is_alive().await
    {
        usable = None;
    }
    let mut connection = match usable {
        Some(connection) => connection,
        None => match Connection::open(target, driver).await {
            Ok(connection) => connection,
            Err(error) => return (Err(error), None),
        },
    };
    let (outcome, reusable) = connection.ask(target, request, limit).await;
    (outcome, reusable.then_some(connection))
}

/// The error of a call whose time is up.
pub fn late(target: &Target, limit: Duration) -> ClientError {
    let text = format!("no answer from {} within {} s", target.address, limit.as_secs_f64());
    ClientError::new(Kind::Timeout, text)
}
