//! How a call ended: the code and the text that the server sends last.

use http::{HeaderMap, StatusCode};

/// Number of the code for what the caller withdrew.
pub const CANCELLED: i32 = 1;
/// Number of the code for an error whose code is not said.
pub const UNKNOWN: i32 = 2;
/// Number of the code for a server that cannot be reached, or not now.
pub const UNAVAILABLE: i32 = 14;

/// Code and text in headers or trailers; `None` where there are none.
pub fn of_headers(headers: &HeaderMap) -> Option<(i32, String)> {
    let code = code(headers.get("grpc-status")?.as_bytes());
    let text = headers.get("grpc-message").map(|text| unescape(text.as_bytes())).unwrap_or_default();
    Some((code, text))
}

/// The code that a header's value says.
pub fn code(value: &[u8]) -> i32 {
    std::str::from_utf8(value).ok().and_then(|code| code.parse().ok()).unwrap_or(UNKNOWN)
}

/// What an HTTP status stands for where no gRPC server answered. Source: gRPC's mapping of statuses.
pub fn of_http(status: StatusCode) -> (i32, String) {
    let code = match status.as_u16() {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502 | 503 | 504 => UNAVAILABLE,
        _ => UNKNOWN,
    };
    (code, format!("the server answered with HTTP status {status}: is this a gRPC address?"))
}

/// A text out of `grpc-message`; what is wrongly escaped stays as it is.
pub fn unescape(text: &[u8]) -> String {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        let byte = (*first == b'%').then(|| tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok()));
        match byte.flatten().and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                plain.push(byte);
                rest = &tail[2..];
            }
            None => {
                plain.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_byte_by_byte() {
        assert_eq!(unescape(b"100 %25 %C5%BE%0A'x'"), "100 % ž\n'x'");
        assert_eq!(unescape(b"%"), "%");
        assert_eq!(unescape(b"50%zz"), "50%zz");
    }

    #[test]
    fn trailers_say_code_and_text() {
        let mut trailers = HeaderMap::new();
        assert_eq!(of_headers(&trailers), None);
        trailers.insert("grpc-status", "14".parse().unwrap());
        trailers.insert("grpc-message", "shutting down".parse().unwrap());
        assert_eq!(of_headers(&trailers), Some((UNAVAILABLE, "shutting down".to_owned())));
    }
}
