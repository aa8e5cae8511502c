//! One call's answer, put together from the frames that belong to it.

use alipes_protocol::codec::proto::first_raw_output;
use bytes::Bytes;
use http::StatusCode;

use super::fields::Fields;
use crate::error::ClientError;
use crate::grpc::messages::Messages;
use crate::grpc::{status, unary};

/// The headers that matter to a call.
#[derive(Debug, Default, PartialEq)]
pub struct Headers {
    status: Option<u16>,
    code: Option<i32>,
    text: String,
}

impl Headers {
    /// Reads a block; `None` where it is none.
    pub fn read(fields: &mut Fields, block: &[u8]) -> Option<Headers> {
        let mut headers = Headers::default();
        fields.read(block, |name, value| match name {
            b":status" => headers.status = std::str::from_utf8(value).ok().and_then(|status| status.parse().ok()),
            b"grpc-status" => headers.code = Some(status::code(value)),
            b"grpc-message" => headers.text = status::unescape(value),
            _ => {}
        })?;
        Some(headers)
    }
}

/// A call on its way.
pub struct PendingCall {
    /// Its number on the connection.
    pub number: u32,
    /// Bytes that may be sent.
    pub window: i64,
    /// Bytes received since the last update of the window.
    pub consumed: u32,
    /// Nothing more comes.
    pub ended: bool,
    messages: Messages,
    message: Option<Bytes>,
    /// Whether HTTP's status has come, behind which there is only gRPC's.
    begun: bool,
    /// What the server says in the place of a message.
    refusal: Option<ClientError>,
    /// Whether the status OK has come.
    done: bool,
}

impl PendingCall {
    /// Nothing has come.
    pub fn new(number: u32, window: i64, infer: bool) -> PendingCall {
        let messages = if infer { Messages::with_tensors(first_raw_output) } else { Messages::default() };
        PendingCall {
            number,
            window,
            consumed: 0,
            ended: false,
            messages,
            message: None,
            begun: false,
            refusal: None,
            done: false,
        }
    }

    /// Takes in headers.
    pub fn headers(&mut self, headers: Headers) {
        let is_first = !self.begun;
        if is_first {
            let status = headers.status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or_default();
            if status.is_informational() {
                return;
            }
            self.begun = true;
            if headers.code.is_none() && !status.is_success() {
                self.refusal = Some(unary::refused(status::of_http(status)));
            }
        }
        match headers.code {
            Some(0) if !is_first => self.done = true,
            Some(code) => self.refusal = Some(unary::refused((code, headers.text))),
            None => {}
        }
    }

    /// Takes in a part of the message; what is behind it does not count.
    ///
    /// # Errors
    /// What is no message.
    pub fn data(&mut self, piece: Bytes) -> Result<(), ClientError> {
        if self.message.is_none() && !piece.is_empty() {
            self.messages.push(piece);
            self.message = self.messages.next()?;
        }
        Ok(())
    }

    /// The message.
    ///
    /// # Errors
    /// The error in its place, or that there was none.
    pub fn outcome(self) -> Result<Bytes, ClientError> {
        match (self.refusal, self.done, self.message) {
            (Some(refusal), _, _) => Err(refusal),
            (None, false, _) => Err(ClientError::broken("the server ended the call without a status")),
            (None, true, None) => Err(ClientError::broken("the server ended the call without a response")),
            (None, true, Some(message)) => Ok(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(status: Option<u16>, code: Option<i32>) -> Headers {
        Headers { status, code, text: String::new() }
    }

    fn outcome(headers: Vec<Headers>, data: &'static [u8]) -> Result<Bytes, String> {
        let mut call = PendingCall::new(1, 0, false);
        let mut headers = headers.into_iter();
        call.headers(headers.next().unwrap());
        call.data(Bytes::from_static(data)).unwrap();
        headers.for_each(|block| call.headers(block));
        call.outcome().map_err(|error| error.message)
    }

    #[test]
    fn a_message_counts_once_the_server_says_that_all_went_well() {
        let message = b"\0\0\0\0\x02ok";
        let first = || block(Some(200), None);
        assert_eq!(outcome(vec![first(), block(None, Some(0))], message), Ok(Bytes::from_static(b"ok")));
        assert_eq!(outcome(vec![first(), block(None, Some(5))], message), Err("gRPC status NOT_FOUND".to_owned()));
        for (headers, data, word) in [
            (vec![first()], &message[..], "without a status"),
            (vec![first(), block(None, Some(0))], b"", "without a response"),
            (vec![block(Some(200), Some(5))], b"", "NOT_FOUND"),
            (vec![block(Some(502), None)], b"", "502"),
        ] {
            let error = outcome(headers, data).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn interim_answers_are_none() {
        let headers = vec![block(Some(103), None), block(Some(200), None), block(None, Some(0))];
        assert!(outcome(headers, b"\0\0\0\0\0").is_ok());
    }
}
