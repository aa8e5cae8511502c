//! Header names as the client spelled them.
//!
//! HTTP does not tell upper from lower case in names, and neither does hyper. Models that are handed headers do, as
//! they do behind Triton. So where headers are forwarded, and nowhere else, the received bytes are kept until the next
//! response, and names are looked up in them. Nothing but the spelling of a name comes from there.

use std::sync::Arc;

use alipes_protocol::limits;
use parking_lot::Mutex;

/// The bytes received on a connection since its last response.
#[derive(Clone, Default)]
pub struct Spelling(Arc<Mutex<Recorded>>);

#[derive(Default)]
struct Recorded {
    bytes: Vec<u8>,
    ended: bool,
}

impl Spelling {
    /// A name as it was spelled in front of this value; `name` itself where that was not recorded.
    pub fn of(&self, name: &str, value: &[u8]) -> String {
        find(&self.0.lock().bytes, name, value).unwrap_or_else(|| name.to_owned())
    }

    /// Records bytes received on the connection.
    pub fn record(&self, bytes: &[u8]) {
        let mut recorded = self.0.lock();
        if std::mem::take(&mut recorded.ended) {
            recorded.bytes.clear();
        }
        // Names stand in front; a body is of no interest.
        let room = limits::HTTP_MAX_HEADER_BYTES - recorded.bytes.len();
        recorded.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Notes that a response began: the next bytes belong to other requests.
    pub fn end_request(&self) {
        self.0.lock().ended = true;
    }
}

/// The last line with this name and value: lines of earlier requests may stand in front.
fn find(recorded: &[u8], name: &str, value: &[u8]) -> Option<String> {
    let spelled = recorded.rsplit(|&byte| byte == b'\n').find_map(|line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        let (spelled, rest) = line.split_at(colon);
        (spelled.eq_ignore_ascii_case(name.as_bytes()) && rest[1..].trim_ascii() == value).then_some(spelled)
    })?;
    String::from_utf8(spelled.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_back_as_it_was_spelled() {
        let spelling = Spelling::default();
        spelling.record(b"POST / HTTP/1.1\r\nX-Te");
        spelling.record(b"am:  golden \r\nOTHER: 1\r\n\r\nbody");
        assert_eq!(spelling.of("x-team", b"golden"), "X-Team");
        assert_eq!(spelling.of("other", b"1"), "OTHER");
        assert_eq!(spelling.of("x-team", b"silver"), "x-team");
        assert_eq!(spelling.of("absent", b""), "absent");
    }

    #[test]
    fn bytes_recorded_before_a_response_are_dropped() {
        let spelling = Spelling::default();
        spelling.record(b"X-A: 1\r\n\r\n");
        spelling.end_request();
        assert_eq!(spelling.of("x-a", b"1"), "X-A");
        spelling.record(b"x-A: 1\r\n\r\n");
        assert_eq!(spelling.of("x-a", b"1"), "x-A");
    }

    #[test]
    fn recorded_bytes_are_bounded() {
        let spelling = Spelling::default();
        (0..100).for_each(|_| spelling.record(&[b'x'; 10_000]));
        assert_eq!(spelling.0.lock().bytes.len(), limits::HTTP_MAX_HEADER_BYTES);
    }
}
