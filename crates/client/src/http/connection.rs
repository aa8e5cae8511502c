//! A connection of HTTP/1.1, for one request at a time.

#[cfg(test)]
mod fuzz;

use std::io::IoSlice;
use std::os::fd::AsFd;
use std::time::Instant;

use alipes_protocol::limits::HTTP_MAX_HEADER_BYTES;
use bytes::{Buf, Bytes, BytesMut};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::head::{self, Head};
use super::{body, reply};
use crate::driver::Driver;
use crate::error::{ClientError, Kind};
use crate::message::{Incoming, Outgoing, Received};
use crate::socket::{self, Arrival, Socket};
use crate::target::Target;

/// Room for an answer of a small model; it grows with what comes.
const BUFFER_BYTES: usize = 8 * 1024;

/// Most pieces that are written with one call of the system.
const PIECES_AT_ONCE: usize = 16;

/// A connection, and what was read of it beyond the last answer.
pub struct HttpConnection<S = Socket> {
    socket: S,
    buffer: BytesMut,
}

impl HttpConnection {
    /// Connects.
    ///
    /// # Errors
    /// If nobody is there.
    pub async fn open(target: &Target, driver: Driver) -> Result<HttpConnection, ClientError> {
        let socket = socket::open(target, driver).await?;
        Ok(HttpConnection { socket, buffer: BytesMut::new() })
    }
}

impl<S: AsFd> HttpConnection<S> {
    /// Whether the server has neither closed it nor sent what nobody asked for.
    pub fn is_alive(&self) -> bool {
        let look = recv(&self.socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        look == Err(Errno::AGAIN)
    }
}

impl<S: AsyncRead + AsyncWrite + Arrival + Unpin> HttpConnection<S> {
    /// Asks.
    ///
    /// # Returns
    /// The answer, and whether the connection can be used again.
    pub async fn ask(&mut self, target: &Target, request: Outgoing) -> (Result<Incoming, ClientError>, bool) {
        match self.attempt(target, request).await {
            Ok((outcome, keep)) => (outcome, keep),
            Err(error) => (Err(error), false),
        }
    }

    /// Sends a request that is whole, head and body, and receives its answer as it is.
    ///
    /// # Errors
    /// A broken connection, and what the server refuses.
    ///
    /// # Returns
    /// The answer, and whether the connection can be used again.
    pub async fn exchange(&mut self, whole: &[u8]) -> (Result<Received, ClientError>, bool) {
        match self.send_and_receive(whole).await {
            Ok((outcome, keep)) => (outcome, keep),
            Err(error) => (Err(error), false),
        }
    }

    async fn send_and_receive(&mut self, whole: &[u8]) -> Result<(Result<Received, ClientError>, bool), ClientError> {
        let of_io = |error: std::io::Error| ClientError::of_socket("the connection broke", &error);
        self.socket.write_all(whole).await.map_err(of_io)?;
        self.socket.flush().await.map_err(of_io)?;
        let sent = alipes_clock::now();
        self.buffer.reserve(BUFFER_BYTES);
        body::more(&mut self.socket, &mut self.buffer).await?;
        let first = self.arrived(sent);
        let head = self.head().await?;
        let body = body::read(&mut self.socket, &mut self.buffer, &head).await?;
        let last = self.arrived(sent);
        let keep = head.keep && self.buffer.is_empty();
        let outcome =
            if is_success(&head) { Ok(Received { body, sent, first, last }) } else { Err(refused(&head, &body)) };
        Ok((outcome, keep))
    }

    async fn attempt(
        &mut self,
        target: &Target,
        request: Outgoing,
    ) -> Result<(Result<Incoming, ClientError>, bool), ClientError> {
        let head = head::request(target, &request)?;
        let written = self.write(head, request.pieces).await;
        // A server that refuses a long request does not read it to its end: what it says counts.
        let head = match (self.head().await, &written) {
            (Ok(head), _) => head,
            (Err(error), _) if error.kind == Kind::Tls => return Err(error),
            (Err(_), Err(error)) => return Err(broken(target, error)),
            (Err(error), Ok(())) => return Err(error),
        };
        let body = body::read(&mut self.socket, &mut self.buffer, &head).await?;
        let keep = head.keep && written.is_ok() && self.buffer.is_empty();
        Ok((read(&head, body, request.infer), keep))
    }

    async fn write(&mut self, head: String, mut pieces: Vec<Bytes>) -> std::io::Result<()> {
        pieces.insert(0, Bytes::from(head));
        let mut rest = &mut pieces[..];
        while !rest.is_empty() {
            let slices: Vec<IoSlice<'_>> = rest.iter().take(PIECES_AT_ONCE).map(|piece| IoSlice::new(piece)).collect();
            let mut written = self.socket.write_vectored(&slices).await?;
            while let Some(first) = rest.first_mut().filter(|first| written >= first.len()) {
                written -= first.len();
                rest = &mut rest[1..];
            }
            if let Some(first) = rest.first_mut() {
                first.advance(written);
            }
        }
        // What is encrypted may not all have left.
        self.socket.flush().await
    }

    /// When what was read last was there: not before its request was sent.
    fn arrived(&self, sent: Instant) -> Instant {
        self.socket.arrived().map_or_else(alipes_clock::now, |arrived| arrived.max(sent))
    }

    async fn head(&mut self) -> Result<Head, ClientError> {
        loop {
            if let Some(head) = head::response(&self.buffer)? {
                self.buffer.advance(head.size);
                if !(100..200).contains(&head.status) {
                    return Ok(head);
                }
            } else if self.buffer.len() > HTTP_MAX_HEADER_BYTES {
                return Err(ClientError::broken("the answer's head is longer than any"));
            } else {
                self.buffer.reserve(BUFFER_BYTES);
                body::more(&mut self.socket, &mut self.buffer).await?;
            }
        }
    }
}

fn broken(target: &Target, error: &std::io::Error) -> ClientError {
    ClientError::of_socket(format!("the connection to {} broke", target.address), error)
}

#[derive(Deserialize)]
struct ErrorDocument {
    error: String,
}

/// A body as an answer.
fn read(head: &Head, body: Bytes, infer: bool) -> Result<Incoming, ClientError> {
    if !is_success(head) {
        return Err(refused(head, &body));
    }
    if !infer {
        return Ok(Incoming::Body(body));
    }
    reply::decode(body, head.json_length).map(|reply| Incoming::Reply(Box::new(reply)))
}

fn is_success(head: &Head) -> bool {
    (200..300).contains(&head.status)
}

/// The status of a port that does not speak HTTP/1, such as that of gRPC. Source: RFC 9110, section 15.5.22.
const NO_HTTP1: u16 = 426;

/// What the server says with a status that is no success.
fn refused(head: &Head, body: &[u8]) -> ClientError {
    let reported = serde_json::from_slice::<ErrorDocument>(body).map(|failure| failure.error);
    let text = reported.unwrap_or_else(|_| match body.is_empty() {
        true => format!("HTTP status {}", head.status),
        false => format!("HTTP status {}: {}", head.status, String::from_utf8_lossy(&body[..body.len().min(200)])),
    });
    let kind = if head.status == NO_HTTP1 { Kind::Broken } else { Kind::Refused(code(head.status)) };
    ClientError::new(kind, text)
}

/// Number of the gRPC code that an HTTP status stands for.
fn code(status: u16) -> i32 {
    match status {
        400 | 413 | 415 => 3,
        401 => 16,
        403 => 7,
        404 => 5,
        409 => 6,
        429 => 8,
        499 => 1,
        501 => 12,
        502 | 503 => 14,
        504 => 4,
        500.. => 13,
        _ => 2,
    }
}
