//! Header names as the client spelled them.
//!
//! HTTP does not tell upper from lower case in names, and neither does hyper. Models that are handed headers do, as they
//! do behind Triton. So where headers are forwarded, and nowhere else, the bytes that arrive are kept until the next
//! answer, and names are looked up among them. Nothing but the spelling of a name is taken from there.

use std::sync::Arc;

use alipes_protocol::limits;
use parking_lot::Mutex;

/// What was heard on a connection since its last answer.
#[derive(Clone, Default)]
pub struct Spelling(Arc<Mutex<Heard>>);

#[derive(Default)]
struct Heard {
    bytes: Vec<u8>,
    answered: bool,
}

impl Spelling {
    /// A name as it was spelled in front of this value; as it is where that was not heard.
    pub fn of(&self, name: &str, value: &[u8]) -> String {
        find(&self.0.lock().bytes, name, value).unwrap_or_else(|| name.to_owned())
    }

    /// Hears what came on the connection.
    pub fn hear(&self, bytes: &[u8]) {
        let mut heard = self.0.lock();
        if std::mem::take(&mut heard.answered) {
            heard.bytes.clear();
        }
        // Names stand in front; a body is of no interest.
        let room = limits::HTTP_MAX_HEADER_BYTES - heard.bytes.len();
        heard.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Notes that an answer was given: what comes next belongs to other requests.
    pub fn answer(&self) {
        self.0.lock().answered = true;
    }
}

/// The last line with this name and value: lines of earlier requests may stand in front.
fn find(heard: &[u8], name: &str, value: &[u8]) -> Option<String> {
    let spelled = heard.rsplit(|&byte| byte == b'\n').find_map(|line| {
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
        spelling.hear(b"POST / HTTP/1.1\r\nX-Te");
        spelling.hear(b"am:  golden \r\nOTHER: 1\r\n\r\nbody");
        assert_eq!(spelling.of("x-team", b"golden"), "X-Team");
        assert_eq!(spelling.of("other", b"1"), "OTHER");
        assert_eq!(spelling.of("x-team", b"silver"), "x-team");
        assert_eq!(spelling.of("absent", b""), "absent");
    }

    #[test]
    fn what_was_heard_before_an_answer_is_forgotten() {
        let spelling = Spelling::default();
        spelling.hear(b"X-A: 1\r\n\r\n");
        spelling.answer();
        assert_eq!(spelling.of("x-a", b"1"), "X-A");
        spelling.hear(b"x-A: 1\r\n\r\n");
        assert_eq!(spelling.of("x-a", b"1"), "x-A");
    }

    #[test]
    fn a_body_of_any_length_is_not_kept() {
        let spelling = Spelling::default();
        (0..100).for_each(|_| spelling.hear(&[b'x'; 10_000]));
        assert_eq!(spelling.0.lock().bytes.len(), limits::HTTP_MAX_HEADER_BYTES);
    }
}
