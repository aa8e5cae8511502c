//! Heads: of requests as bytes, of responses read.

#[cfg(test)]
mod fuzz;

use std::fmt::Write;

use alipes_protocol::limits::HTTP_MAX_HEADERS;

use crate::error::{ClientError, Kind};
use crate::message::{Outgoing, Verb};
use crate::sequence;
use crate::target::Target;

const AGENT: &str = concat!("alipes/", env!("CARGO_PKG_VERSION"));

/// How a server begins that refuses what is not encrypted: the record of an alert, and the version.
const TLS_ALERT: [u8; 2] = [0x15, 3];

/// The head of a request.
///
/// # Errors
/// Headers that HTTP does not know.
pub fn request(target: &Target, request: &Outgoing) -> Result<String, ClientError> {
    let verb = if request.verb == Verb::Get { "GET" } else { "POST" };
    let mut head = String::with_capacity(256);
    let (prefix, path, host) = (&target.prefix, &request.path, target.address.authority());
    let _ = write!(head, "{verb} {prefix}{path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {AGENT}\r\n");
    if request.verb == Verb::Post {
        let length: usize = request.pieces.iter().map(bytes::Bytes::len).sum();
        let kind = if request.infer { "application/octet-stream" } else { "application/json" };
        let _ = write!(head, "Content-Type: {kind}\r\nContent-Length: {length}\r\n");
    }
    if let Some(length) = request.json_length {
        let _ = write!(head, "Inference-Header-Content-Length: {length}\r\n");
    }
    for (name, value) in target.headers.iter().chain(&request.headers) {
        check(name, value)?;
        let _ = write!(head, "{name}: {value}\r\n");
    }
    if let Some(id) = request.sequence.as_ref().filter(|_| !target.names(sequence::HEADER)) {
        let _ = write!(head, "{}: {id}\r\n", sequence::HEADER);
    }
    head.push_str("\r\n");
    Ok(head)
}

fn check(name: &str, value: &str) -> Result<(), ClientError> {
    let fits = http::HeaderName::from_bytes(name.as_bytes()).is_ok() && http::HeaderValue::from_str(value).is_ok();
    if fits { Ok(()) } else { Err(ClientError::new(Kind::Connect, format!("the header '{name}' cannot be sent"))) }
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// After so many bytes.
    Known(usize),
    /// After a last chunk.
    Chunked,
    /// With the connection.
    UntilClosed,
}

/// What the head of a response says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Bytes of the head.
    pub size: usize,
    /// The status.
    pub status: u16,
    /// How the body ends.
    pub length: Length,
    /// Bytes of JSON in front of binary tensors.
    pub json_length: Option<usize>,
    /// Whether further requests may follow.
    pub keep: bool,
}

/// Reads a head; `None` where it is not whole yet.
///
/// # Errors
/// What is no response of HTTP/1.
pub fn response(bytes: &[u8]) -> Result<Option<Head>, ClientError> {
    let mut headers = [httparse::EMPTY_HEADER; HTTP_MAX_HEADERS];
    let mut parsed = httparse::Response::new(&mut headers);
    let outcome = parsed.parse(bytes).map_err(|error| no_http(bytes, error))?;
    let httparse::Status::Complete(size) = outcome else { return Ok(None) };
    let status = parsed.code.unwrap_or(0);
    let mut head =
        Head { size, status, length: Length::UntilClosed, json_length: None, keep: parsed.version == Some(1) };
    for header in parsed.headers.iter() {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        let number = || std::str::from_utf8(header.value).ok().and_then(|text| text.trim().parse::<usize>().ok());
        if is("content-length") && head.length != Length::Chunked {
            let length = number().ok_or_else(|| ClientError::broken("the answer has an unreadable Content-Length"))?;
            head.length = Length::Known(length);
        } else if is("transfer-encoding") {
            head.length = Length::Chunked;
        } else if is("inference-header-content-length") {
            head.json_length = number();
        } else if is("connection") {
            let named = |word: &str| header.value.split(|byte| *byte == b',').any(|part| same(part, word));
            head.keep = (head.keep || named("keep-alive")) && !named("close");
        }
    }
    if matches!(status, 204 | 304) || (100..200).contains(&status) {
        head.length = Length::Known(0);
    }
    head.keep &= head.length != Length::UntilClosed;
    Ok(Some(head))
}

fn no_http(bytes: &[u8], error: httparse::Error) -> ClientError {
    match bytes.starts_with(&TLS_ALERT) {
        true => ClientError::new(Kind::Tls, "the server takes encrypted connections alone there: ask it with https://"),
        false => ClientError::broken(format!("the answer is no HTTP: {error}")),
    }
}

fn same(part: &[u8], word: &str) -> bool {
    part.trim_ascii().eq_ignore_ascii_case(word.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::target::Wire;

    #[test]
    fn headers_of_one_request_stand_behind_those_of_the_target() {
        let headers = vec![("a".to_owned(), "1".to_owned())];
        let target = Target::new("h:1", Wire::Http, headers, Duration::ZERO).unwrap();
        let with = |name: &str, value: &str| Outgoing {
            path: "/x".to_owned(),
            verb: Verb::Get,
            json_length: None,
            pieces: Vec::new(),
            infer: false,
            sequence: None,
            headers: vec![(name.to_owned(), value.to_owned())],
        };
        assert!(request(&target, &with("b", "2")).unwrap().contains("\r\na: 1\r\nb: 2\r\n"));
        assert!(request(&target, &with("b", "2\r\nc: 3")).is_err());
    }

    #[test]
    fn a_head_determines_the_end_of_its_body() {
        let read = |text: &str| response(text.as_bytes()).unwrap().unwrap();
        let head = read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nInference-Header-Content-Length: 3\r\n\r\n");
        assert_eq!((head.length, head.json_length, head.keep), (Length::Known(5), Some(3), true));
        let head = read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
        assert_eq!((head.length, head.keep), (Length::Chunked, false));
        let head = read("HTTP/1.0 200 OK\r\n\r\n");
        assert_eq!((head.length, head.keep), (Length::UntilClosed, false));
        assert_eq!(response(b"HTTP/1.1 200 OK\r\n"), Ok(None));
        assert!(response(b"nonsense\r\n\r\n").is_err());
    }
}
