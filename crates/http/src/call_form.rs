//! How the responses to one call follow each other: as server-sent events, one on each line, or as pieces of one body.

use alipes_protocol::{InferError, InferResponse};
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{ACCEPT, CONTENT_TYPE};

use super::broken_off::BrokenOff;
use super::call_body;
use super::error_body::error_body;

/// The media type of newline-delimited JSON.
pub const LINES: &str = "application/x-ndjson";
const EVENTS: &str = "text/event-stream";

/// How responses follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallForm {
    /// Server-sent events.
    Events,
    /// One line each.
    Lines,
    /// As they are.
    Pieces,
}

impl CallForm {
    /// What a client prefers; none where it prefers neither.
    pub fn wanted(headers: &HeaderMap) -> Option<CallForm> {
        let ranges = || {
            headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','))
        };
        let quality = |kind: &str| ranges().filter_map(|range| quality_of(range, kind)).fold(0.0, f32::max);
        let (events, lines) = (quality(EVENTS), quality(LINES));
        if events == lines {
            return None;
        }
        Some(if events > lines { CallForm::Events } else { CallForm::Lines })
    }

    /// What a model names as the type of its first response.
    pub fn of_model(headers: &HeaderMap) -> CallForm {
        match headers.get(CONTENT_TYPE) {
            Some(kind) if kind.as_bytes().starts_with(LINES.as_bytes()) => CallForm::Lines,
            _ => CallForm::Events,
        }
    }

    /// A response as it is sent, or why there is none.
    ///
    /// # Errors
    ///
    /// As those of `error`.
    pub fn write(self, response: Result<InferResponse, InferError>) -> Result<Bytes, BrokenOff> {
        match response.and_then(|response| call_body::of_response(&response)) {
            Ok(body) if self == CallForm::Pieces => Ok(body),
            Ok(body) => Ok(self.frame(&body)),
            Err(error) => self.error(&error),
        }
    }

    /// A body as one event, line or piece. Line breaks begin a further line of an event; in JSON they may as well be
    /// spaces.
    pub fn frame(self, body: &[u8]) -> Bytes {
        match self {
            CallForm::Events => {
                let mut event = Vec::with_capacity(body.len() + 8);
                for line in lines(body) {
                    event.extend_from_slice(b"data: ");
                    event.extend_from_slice(line);
                    event.push(b'\n');
                }
                event.push(b'\n');
                event.into()
            }
            CallForm::Lines => {
                let one = |&byte: &u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte };
                body.iter().map(one).chain([b'\n']).collect()
            }
            CallForm::Pieces => Bytes::copy_from_slice(body),
        }
    }

    /// What tells a client that no further response comes, and why.
    ///
    /// # Errors
    ///
    /// Pieces have no place for it: the body has to break off.
    pub fn error(self, error: &InferError) -> Result<Bytes, BrokenOff> {
        let body = error_body(&error.message);
        match self {
            CallForm::Events => Ok([b"event: error\ndata: ", &body[..], b"\n\n"].concat().into()),
            CallForm::Lines => Ok([&body[..], b"\n"].concat().into()),
            CallForm::Pieces => Err(BrokenOff),
        }
    }
}

/// The lines of a text as a reader of events finds them: a carriage return ends one, too.
fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(body);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
            rest = None;
            return Some(text);
        };
        let break_bytes = if text[end..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = Some(&text[end + break_bytes..]);
        Some(&text[..end])
    })
}

/// The quality of a media type in one range of `Accept`; none where the range is of another.
fn quality_of(range: &str, kind: &str) -> Option<f32> {
    let mut parts = range.split(';').map(str::trim);
    let is_kind = parts.next().is_some_and(|named| named.eq_ignore_ascii_case(kind));
    let quality = || parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    is_kind.then(quality).map(|quality| quality.map_or(1.0, |quality| quality.parse().unwrap_or(0.0)))
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn wanted(accept: &'static str) -> Option<CallForm> {
        CallForm::wanted(&HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]))
    }

    #[test]
    fn a_client_chooses_events_or_lines() {
        for accept in
            ["text/event-stream", "Text/Event-Stream;q=0.5, application/x-ndjson;q=0.4", "a/b, text/event-stream"]
        {
            assert_eq!(wanted(accept), Some(CallForm::Events), "{accept}");
        }
        for accept in ["application/x-ndjson", "text/event-stream;q=0, application/x-ndjson; q=0.1"] {
            assert_eq!(wanted(accept), Some(CallForm::Lines), "{accept}");
        }
        for accept in
            ["*/*", "", "application/json", "text/event-stream, application/x-ndjson", "text/event-stream;q=x"]
        {
            assert_eq!(wanted(accept), None, "{accept}");
        }
        assert_eq!(CallForm::wanted(&HeaderMap::new()), None);
    }

    #[test]
    fn a_body_is_one_event_however_many_lines_it_has() {
        let event = |body: &[u8]| CallForm::Events.frame(body);
        assert_eq!(event(b"{}"), "data: {}\n\n");
        assert_eq!(event(b""), "data: \n\n");
        assert_eq!(event(b"a\nb\r\nc\rd"), "data: a\ndata: b\ndata: c\ndata: d\n\n");
        assert_eq!(event(b"a\r"), "data: a\ndata: \n\n");
        assert_eq!(event(b"a\n\nevent: error"), "data: a\ndata: \ndata: event: error\n\n");
    }

    #[test]
    fn a_body_is_one_line() {
        assert_eq!(CallForm::Lines.frame(b"{\n \"a\": 1\r\n}"), "{  \"a\": 1  }\n");
    }

    #[test]
    fn an_error_is_an_event_of_its_own() {
        let error = InferError::internal("no \"luck\"");
        assert_eq!(CallForm::Events.error(&error).unwrap(), "event: error\ndata: {\"error\":\"no \\\"luck\\\"\"}\n\n");
        assert_eq!(CallForm::Lines.error(&error).unwrap(), "{\"error\":\"no \\\"luck\\\"\"}\n");
    }

    #[test]
    fn a_piece_is_the_body_and_an_error_breaks_it_off() {
        assert_eq!(CallForm::Pieces.frame(b"a\nb"), "a\nb");
        CallForm::Pieces.error(&InferError::internal("no luck")).unwrap_err();
    }
}
