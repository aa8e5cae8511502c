//! Calls of one request and one response.

use std::time::{Duration, Instant};

use alipes_protocol::codec::proto::{RequestMessage, first_raw_output};
use bytes::{BufMut, Bytes};
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderValue, Request};

use super::messages::{Messages, PREFIX_BYTES};
use super::{call, status, writer};
use crate::error::{ClientError, Kind};
use crate::message::{Outgoing, Received, Verb};
use crate::sequence;
use crate::target::Target;

/// A message up to this size leaves in one frame together with the end of the call.
const ONE_FRAME_BYTES: usize = 16 * 1024;

/// An inference as a request; `owned` gives the elements of an input that need not be copied.
pub fn infer(message: &RequestMessage<'_>, owned: impl Fn(usize) -> Option<Bytes>) -> Outgoing {
    let pieces = message.pieces(&prefix(message.encoded_len()), owned);
    Outgoing {
        path: "ModelInfer".to_owned(),
        verb: Verb::Post,
        json_length: None,
        pieces,
        infer: true,
        sequence: sequence::of(message.parameters),
        headers: Vec::new(),
    }
}

/// A call of another method with a serialized message.
pub fn control(method: &str, message: &[u8]) -> Outgoing {
    let mut wire = Vec::with_capacity(PREFIX_BYTES + message.len());
    wire.extend_from_slice(&prefix(message.len()));
    wire.extend_from_slice(message);
    Outgoing {
        path: method.to_owned(),
        verb: Verb::Post,
        json_length: None,
        pieces: vec![wire.into()],
        infer: false,
        sequence: None,
        headers: Vec::new(),
    }
}

fn prefix(length: usize) -> [u8; PREFIX_BYTES] {
    let mut prefix = [0; PREFIX_BYTES];
    (&mut prefix[1..]).put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    prefix
}

/// Asks and waits.
///
/// # Errors
/// What the server says, or a broken connection.
pub async fn call(
    requests: &SendRequest<Bytes>,
    target: &Target,
    request: Outgoing,
    limit: Option<Duration>,
) -> Result<Bytes, ClientError> {
    let mut head = call::head(target, &request.path, limit)?;
    if let Some(id) = request.sequence.as_deref().and_then(|id| HeaderValue::from_str(id).ok()) {
        head.headers_mut().entry(sequence::HEADER).or_insert(id);
    }
    for (name, value) in &request.headers {
        let (name, value) = call::header(name, value)?;
        head.headers_mut().append(name, value);
    }
    let received = exchange(requests.clone(), target, head, request.pieces, request.infer).await?;
    Ok(received.body)
}

/// The head of a call, for who makes many of them.
///
/// # Errors
/// Headers of the target that HTTP does not know or gRPC keeps for itself.
pub fn head(target: &Target, method: &str) -> Result<Request<()>, ClientError> {
    call::head(target, method, None)
}

/// Sends a head and a message in pieces, and receives the answer as it is; an inference's with its tensors aligned.
///
/// # Errors
/// What the server says, or a broken connection.
pub async fn exchange(
    requests: SendRequest<Bytes>,
    target: &Target,
    head: Request<()>,
    pieces: Vec<Bytes>,
    infer: bool,
) -> Result<Received, ClientError> {
    let mut requests = requests.ready().await.map_err(|error| broken(target, &error))?;
    let (response, body) = requests.send_request(head, false).map_err(|error| broken(target, &error))?;
    let mut sending = Box::pin(send(body, pieces));
    let mut receiving = Box::pin(receive(response, infer));
    let mut sent = None;
    let outcome = loop {
        tokio::select! {
            biased;
            () = &mut sending, if sent.is_none() => sent = Some(alipes_clock::now()),
            outcome = &mut receiving => break outcome,
        }
    };
    match outcome {
        Ok((body, first)) => Ok(Received { body, sent: sent.unwrap_or(first), first, last: alipes_clock::now() }),
        Err(CallFailure::Broken(error)) => Err(broken(target, &error)),
        Err(CallFailure::Reported(error)) => Err(error),
    }
}

enum CallFailure {
    Broken(h2::Error),
    Reported(ClientError),
}

impl From<h2::Error> for CallFailure {
    fn from(error: h2::Error) -> CallFailure {
        CallFailure::Broken(error)
    }
}

impl From<ClientError> for CallFailure {
    fn from(error: ClientError) -> CallFailure {
        CallFailure::Reported(error)
    }
}

/// Sends all pieces; the response carries any error.
async fn send(mut body: SendStream<Bytes>, pieces: Vec<Bytes>) {
    let whole = pieces.len() == 1 && pieces[0].len() <= ONE_FRAME_BYTES;
    for piece in pieces {
        if whole {
            let _ = body.send_data(piece, true);
            return;
        }
        if writer::send(&mut body, piece).await.is_err() {
            return;
        }
    }
    let _ = body.send_data(Bytes::new(), true);
}

/// The message, and when the answer began.
async fn receive(response: ResponseFuture, infer: bool) -> Result<(Bytes, Instant), CallFailure> {
    let (head, body) = response.await?.into_parts();
    let first_bytes = alipes_clock::now();
    if let Some(status) = status::of_headers(&head.headers) {
        return Err(refused(status).into());
    }
    if !head.status.is_success() {
        return Err(refused(status::of_http(head.status)).into());
    }
    let messages = if infer { Messages::with_tensors(first_raw_output) } else { Messages::default() };
    let (message, body) = first(body, messages).await?;
    finish(body).await?;
    let message = message.map(|message| (message, first_bytes));
    message.ok_or_else(|| ClientError::broken("the server ended the call without a response").into())
}

/// The message of the response; what a server sends behind it is left to `finish`.
async fn first(mut body: RecvStream, mut messages: Messages) -> Result<(Option<Bytes>, RecvStream), CallFailure> {
    while let Some(piece) = body.data().await {
        let piece = piece?;
        let _ = body.flow_control().release_capacity(piece.len());
        messages.push(piece);
        if let Some(message) = messages.next()? {
            return Ok((Some(message), body));
        }
    }
    Ok((None, body))
}

/// The call's status.
async fn finish(mut body: RecvStream) -> Result<(), CallFailure> {
    while let Some(piece) = body.data().await {
        let _ = body.flow_control().release_capacity(piece?.len());
    }
    let trailers = body.trailers().await?.unwrap_or_default();
    match status::of_headers(&trailers) {
        Some((0, _)) => Ok(()),
        Some(status) => Err(refused(status).into()),
        None => Err(ClientError::broken("the server ended the call without a status").into()),
    }
}

/// A status that is no success, as an error.
pub fn refused((code, message): (i32, String)) -> ClientError {
    let message =
        if message.is_empty() { format!("gRPC status {}", alipes_protocol::error::grpc_name(code)) } else { message };
    ClientError::new(Kind::Refused(code), message)
}

fn broken(target: &Target, error: &h2::Error) -> ClientError {
    ClientError::of_http2(format!("the connection to {} broke", target.address), error)
}
