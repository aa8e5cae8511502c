//! The id that the head of a request brings: a proxy's, or one that its client made to find the request again.

use alipes_protocol::limits::REQUEST_ID_BYTES;
use compact_str::CompactString;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The header of requests and responses, and the key in the metadata of gRPC.
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// An id that a head brings.
// Boxed, since most heads bring none and every request carries the value about.
#[derive(Clone, Debug)]
pub struct RequestId(Box<HeaderValue>);

impl RequestId {
    /// The id of a head; none where it brings none, or one that is no printable ASCII or too long to be repeated in
    /// logs and responses. A head without an id costs one look into its map.
    pub fn of(headers: &HeaderMap) -> Option<RequestId> {
        let value = headers.get(X_REQUEST_ID)?;
        let bytes = value.as_bytes();
        let is_id =
            (1..=REQUEST_ID_BYTES).contains(&bytes.len()) && bytes.iter().all(|byte| matches!(byte, b' '..=b'~'));
        is_id.then(|| RequestId(Box::new(value.clone())))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        // Printable ASCII always is a text.
        self.0.to_str().unwrap_or_default()
    }

    /// Sends the id back.
    pub fn return_in(self, headers: &mut HeaderMap) {
        headers.insert(X_REQUEST_ID, *self.0);
    }

    /// Gives a request that has no id of its own the one of its head.
    pub fn name(head: Option<&RequestId>, id: &mut CompactString) {
        if let Some(head) = head.filter(|_| id.is_empty()) {
            *id = head.as_str().into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_of(value: &[u8]) -> Option<String> {
        let headers = HeaderMap::from_iter([(X_REQUEST_ID, HeaderValue::from_bytes(value).unwrap())]);
        RequestId::of(&headers).map(|id| id.as_str().to_owned())
    }

    #[test]
    fn an_id_is_short_printable_ascii() {
        let longest = "x".repeat(REQUEST_ID_BYTES);
        for id in ["7", "b7f0-12ab", "with space", "~!", &longest] {
            assert_eq!(id_of(id.as_bytes()).as_deref(), Some(id));
        }
        let too_long = "x".repeat(REQUEST_ID_BYTES + 1);
        for no_id in [&b""[..], b"a\tb", b"\xc5\xbe", too_long.as_bytes()] {
            assert_eq!(id_of(no_id), None, "{no_id:?}");
        }
        assert!(RequestId::of(&HeaderMap::new()).is_none());
    }

    #[test]
    fn the_id_of_a_body_stays() {
        let headers = HeaderMap::from_iter([(X_REQUEST_ID, HeaderValue::from_static("head"))]);
        let head = RequestId::of(&headers);
        let named = |mut id: CompactString, head| {
            RequestId::name(head, &mut id);
            id
        };
        assert_eq!(named("body".into(), head.as_ref()), "body");
        assert_eq!(named("".into(), head.as_ref()), "head");
        assert_eq!(named("".into(), None), "");
        let mut response = HeaderMap::new();
        head.unwrap().return_in(&mut response);
        assert_eq!(response[X_REQUEST_ID], "head");
    }
}
