//! The id of a sequence: written into a request that is encoded already, and said in a header.

use std::fmt::Write;

use alipes_protocol::Parameter;
use alipes_protocol::codec::proto::RequestMessage;
use bytes::{BufMut, Bytes, BytesMut};

use crate::grpc::messages::PREFIX_BYTES;
use crate::message::Outgoing;
use crate::target::Wire;

/// The header that says which sequence a request belongs to, so that what stands in front of several servers need not
/// read the request to send all of a sequence to one of them.
pub const HEADER: &str = "x-sequence-id";

const KEY: &str = "sequence_id";

/// How the JSON of a request with parameters ends: their object, then its own.
const JSON_END: &[u8] = b"}}";

/// The sequence that the parameters of a request name, as a header has it; zero and the empty text are none.
pub fn of(parameters: &[(String, Parameter)]) -> Option<String> {
    match &parameters.iter().find(|(key, _)| key == KEY)?.1 {
        Parameter::Int64(id) if *id != 0 => Some((*id as u64).to_string()),
        Parameter::String(id) if !id.is_empty() => {
            let mut escaped = String::with_capacity(id.len());
            escape(id, &mut escaped);
            Some(escaped)
        }
        _ => None,
    }
}

/// A part of a path or a header, with everything escaped that could end it.
pub fn escape(part: &str, text: &mut String) {
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            text.push(byte as char);
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
}

impl Outgoing {
    /// This inference with the id of its sequence, which it does not have yet, as it would have been encoded with it;
    /// `None` where it is no inference with parameters. The bytes of large tensors are not copied.
    pub fn of_sequence(&self, wire: Wire, id: u64) -> Option<Outgoing> {
        let mut numbered = self.clone();
        numbered.sequence = Some(id.to_string());
        match wire {
            Wire::Http => {
                let (length, first) = (self.json_length?, self.pieces.first()?);
                let front = first.get(..length)?.strip_suffix(JSON_END)?;
                let json = [front, format!(",\"{KEY}\":{id}").as_bytes(), JSON_END].concat();
                numbered.json_length = Some(json.len());
                numbered.pieces[0] = [&json, &first[length..]].concat().into();
            }
            Wire::Grpc => {
                let entry = entry(id);
                let length = self.pieces.iter().map(Bytes::len).sum::<usize>().checked_sub(PREFIX_BYTES)?;
                let first = self.pieces.first()?.get(PREFIX_BYTES..)?;
                let mut changed = BytesMut::with_capacity(PREFIX_BYTES + first.len());
                changed.put_u8(0);
                changed.put_u32(u32::try_from(length + entry.len()).ok()?);
                changed.extend_from_slice(first);
                numbered.pieces[0] = changed.freeze();
                // The entries of a map may stand anywhere in a message.
                numbered.pieces.push(entry);
            }
        }
        Some(numbered)
    }
}

/// The id as an entry of a message's parameters.
fn entry(id: u64) -> Bytes {
    // Ids are unsigned, and carried with their bits.
    let parameters = [(KEY.to_owned(), Parameter::Int64(id as i64))];
    let (model_name, model_version, text) = ("", "", "");
    let only =
        RequestMessage { model_name, model_version, id: text, parameters: &parameters, inputs: &[], outputs: &[] };
    let mut entry = BytesMut::with_capacity(only.encoded_len());
    only.write(&mut entry);
    entry.freeze()
}

#[cfg(test)]
mod tests {
    use alipes_protocol::codec::proto::MessageInput;

    use std::time::Duration;

    use super::*;
    use crate::grpc::unary;
    use crate::http::{self, head};
    use crate::target::Target;

    const DATA: &[u8] = &[7; 12];

    fn message<'a>(parameters: &'a [(String, Parameter)], inputs: &'a [MessageInput<'a>]) -> RequestMessage<'a> {
        RequestMessage { model_name: "m", model_version: "1", id: "", parameters, inputs, outputs: &[] }
    }

    fn joined(outgoing: &Outgoing) -> Vec<u8> {
        outgoing.pieces.concat()
    }

    #[test]
    fn the_id_is_where_the_encoder_puts_it() {
        let started = ("sequence_start".to_owned(), Parameter::Bool(true));
        let inputs = [MessageInput { name: "x", datatype: "INT32", shape: &[3], parameters: &[], data: Some(DATA) }];
        for id in [0, 1, 300, u64::MAX] {
            let numbered = [started.clone(), (KEY.to_owned(), Parameter::Int64(id as i64))];
            let (without, with) = (message(std::slice::from_ref(&started), &inputs), message(&numbered, &inputs));

            let http = http::request::infer(&without, |_| None).of_sequence(Wire::Http, id).unwrap();
            let json = String::from_utf8(joined(&http)[..http.json_length.unwrap()].to_vec()).unwrap();
            let expected = http::request::infer(&with, |_| None);
            let known = String::from_utf8(joined(&expected)[..expected.json_length.unwrap()].to_vec()).unwrap();
            let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!((read(&json), json.len()), (read(&known), known.len()));
            assert!(joined(&http).ends_with(DATA));

            let grpc = unary::infer(&without, |_| Some(Bytes::from_static(DATA))).of_sequence(Wire::Grpc, id).unwrap();
            let expected = joined(&unary::infer(&with, |_| None));
            let sent = joined(&grpc);
            assert_eq!((sent.len(), &sent[..PREFIX_BYTES]), (expected.len(), &expected[..PREFIX_BYTES]));
            let entry = entry(id);
            assert!(sent.ends_with(&entry) && expected.windows(entry.len()).any(|part| part == entry));
        }
    }

    #[test]
    fn a_header_says_the_id_in_visible_characters() {
        let of = |id| super::of(&[(KEY.to_owned(), id)]);
        assert_eq!(of(Parameter::Int64(-1)), Some(u64::MAX.to_string()));
        assert_eq!(of(Parameter::String("a b\r\n-é".to_owned())), Some("a%20b%0D%0A-%C3%A9".to_owned()));
        assert_eq!((of(Parameter::Int64(0)), of(Parameter::String(String::new()))), (None, None));
        assert_eq!(super::of(&[("priority".to_owned(), Parameter::Int64(1))]), None);
    }

    #[test]
    fn the_header_of_the_caller_counts_more_than_the_id() {
        let target = |headers: &[(&str, &str)]| {
            let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            Target::new("h:1", Wire::Http, headers, Duration::ZERO).unwrap()
        };
        let numbered = [(KEY.to_owned(), Parameter::Int64(7))];
        let request = http::request::infer(&message(&numbered, &[]), |_| None);
        assert!(head::request(&target(&[]), &request).unwrap().contains("x-sequence-id: 7\r\n"));
        let other = head::request(&target(&[("X-Sequence-Id", "a")]), &request).unwrap();
        assert!(other.contains("X-Sequence-Id: a\r\n") && !other.contains(": 7\r\n"));
    }

    #[test]
    fn what_is_no_inference_with_parameters_has_no_place_for_an_id() {
        let bare = Outgoing { json_length: None, ..unary::control("ServerLive", b"") };
        assert!(bare.of_sequence(Wire::Http, 1).is_none());
        assert!(Outgoing { json_length: Some(99), ..bare }.of_sequence(Wire::Http, 1).is_none());
    }
}
