//! How a call ends on the wire: a refusal in the headers, without any message, everything else in the trailers.

use std::fmt::Write;

use alipes_protocol::limits::GRPC_MAX_STATUS_BYTES;
use alipes_protocol::{Code, InferError};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use super::response::ResponseBody;

pub(super) const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// The response that carries an error, with its code from the one table.
pub(super) fn refusal(error: &InferError) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::nothing());
    *response.headers_mut() = failure(error);
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}

/// The trailers of a call that went well.
pub(super) fn success() -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
    trailers
}

/// The trailers of a call that failed.
pub(super) fn failure(error: &InferError) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(3);
    trailers.insert(GRPC_STATUS, HeaderValue::from(error.code.row().grpc_code));
    // The escaped text is visible ASCII, which a header takes.
    if let Ok(text) = HeaderValue::from_maybe_shared(Bytes::from(escape(&error.message))) {
        trailers.insert(GRPC_MESSAGE, text);
    }
    trailers
}

/// The error of open streams when the server stops.
pub(super) fn shutting_down() -> InferError {
    InferError::new(Code::Unavailable, "GRPC server is shutting down and has stopped accepting new requests.")
}

/// The response to what does not speak gRPC at all.
pub(super) fn no_grpc(status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::nothing());
    *response.status_mut() = status;
    response
}

/// A text as `grpc-message` carries it: bytes beyond visible ASCII, and the percent sign, as `%` and two digits.
///
/// Cut, between two characters, where the header would grow past what clients accept.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        let before = escaped.len();
        if matches!(character, ' '..='~') && character != '%' {
            escaped.push(character);
        } else {
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(escaped, "%{byte:02X}");
            }
        }
        if escaped.len() > GRPC_MAX_STATUS_BYTES {
            escaped.truncate(before);
            break;
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_byte_by_byte() {
        assert_eq!(escape("100 % ž\n'x'"), "100 %25 %C5%BE%0A'x'");
    }

    #[test]
    fn an_endless_text_is_cut_between_characters() {
        let escaped = escape(&"ž".repeat(GRPC_MAX_STATUS_BYTES));
        assert!(escaped.len() <= GRPC_MAX_STATUS_BYTES && escaped.ends_with("%C5%BE"));
    }

    #[test]
    fn a_refusal_carries_code_and_text_in_its_headers() {
        let response = refusal(&InferError::invalid("no\u{0}"));
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["grpc-status"], "3");
        assert_eq!(response.headers()["grpc-message"], "no%00");
    }
}
