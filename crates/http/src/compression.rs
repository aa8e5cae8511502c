//! Compressed bodies, both ways: gzip and deflate.
//!
//! A few bytes can expand to many and a large answer takes milliseconds to compress, so all but small bodies are worked
//! off the network threads.

use std::fmt;
use std::io::{self, Read, Write};

use alipes_protocol::{Code, InferError, limits};
use alipes_request::budget::Charge;
use alipes_service::offload::offload;
use bytes::Bytes;
use flate2::Compression;
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};
use hyper::HeaderMap;
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderValue};

use super::body::{Body, Received};

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// Not at all.
    Identity,
    /// RFC 1952.
    Gzip,
    /// RFC 1950, which HTTP calls deflate.
    Deflate,
}

impl Coding {
    /// What is offered, as refusals tell it.
    pub const OFFERED: HeaderValue = HeaderValue::from_static("gzip, deflate");

    /// How a request's body is compressed; none where that is not known here.
    pub fn of_request(headers: &HeaderMap) -> Option<Coding> {
        match headers.get(CONTENT_ENCODING) {
            None => Some(Coding::Identity),
            Some(name) if name.is_empty() => Some(Coding::Identity),
            Some(name) => Coding::named(name.as_bytes()),
        }
    }

    /// How the answer may be compressed: what the client prefers of what is offered.
    pub fn of_answer(headers: &HeaderMap) -> Coding {
        headers.get(ACCEPT_ENCODING).map_or(Coding::Identity, |accepted| preferred(accepted.as_bytes()))
    }

    /// The value of `Content-Encoding`, where there is one.
    pub fn header(self) -> Option<HeaderValue> {
        match self {
            Coding::Identity => None,
            Coding::Gzip => Some(HeaderValue::from_static("gzip")),
            Coding::Deflate => Some(HeaderValue::from_static("deflate")),
        }
    }

    fn named(name: &[u8]) -> Option<Coding> {
        let names: [(&[u8], Coding); 3] =
            [(b"identity", Coding::Identity), (b"gzip", Coding::Gzip), (b"deflate", Coding::Deflate)];
        names.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, coding)| coding)
    }
}

/// The coding with the highest quality, the first among equals; `*` names none, as in Triton.
fn preferred(accepted: &[u8]) -> Coding {
    let (mut best, mut best_quality) = (Coding::Identity, 0.0);
    for offer in accepted.split(|&byte| byte == b',') {
        let mut parts = offer.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let coding = parts.next().and_then(Coding::named);
        let quality = parts.find_map(|part| part.strip_prefix(b"q=")).map_or(Some(1.0), number);
        if let (Some(coding), Some(quality)) = (coding, quality)
            && quality > best_quality
        {
            (best, best_quality) = (coding, quality);
        }
    }
    best
}

fn number(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Expands a compressed body to at most `max_bytes`; `into` collects it.
///
/// Either form is recognized by its first bytes, whatever the header said. Source: recorded Triton behaviour.
///
/// # Errors
///
/// `TooLarge` beyond the limit, `Overloaded` where there is no room now, `InvalidArgument` where the data is damaged,
/// ends early, is followed by something else or is not compressed at all.
pub async fn expand(
    (compressed, charge): (Bytes, Charge),
    into: Received,
    max_bytes: usize,
) -> Result<(Body, Charge), InferError> {
    if compressed.len() <= limits::HTTP_EXPAND_AT_ONCE_BYTES {
        return expand_now(&compressed, into, max_bytes);
    }
    let expanded = offload(move || {
        let expanded = expand_now(&compressed, into, max_bytes);
        drop((compressed, charge));
        expanded
    });
    expanded.await.unwrap_or_else(|| Err(InferError::internal("the request body could not be expanded")))
}

fn expand_now(compressed: &[u8], mut into: Received, max_bytes: usize) -> Result<(Body, Charge), InferError> {
    if compressed.starts_with(&[0x1f, 0x8b]) {
        // It reads members up to the end of the data, so that nothing follows.
        collect(&mut MultiGzDecoder::new(compressed), &mut into, max_bytes)?;
    } else {
        let mut expanding = ZlibDecoder::new(compressed);
        collect(&mut expanding, &mut into, max_bytes)?;
        // Without data there is nothing that it could miss.
        let missing = compressed.is_empty().then_some("it is empty");
        if let Some(cause) = missing.or((!expanding.get_ref().is_empty()).then_some("something else follows")) {
            return Err(damaged(into.len(), cause));
        }
    }
    Ok(into.freeze())
}

fn collect(expanding: &mut impl Read, into: &mut Received, max_bytes: usize) -> Result<(), InferError> {
    let mut piece = vec![0; EXPANDED_PIECE_BYTES];
    loop {
        match expanding.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) if into.len() + length > max_bytes => return Err(too_large(max_bytes)),
            Ok(length) => into.extend(&piece[..length])?,
            Err(cause) => return Err(damaged(into.len(), cause)),
        }
    }
}

fn damaged(expanded: usize, cause: impl fmt::Display) -> InferError {
    InferError::invalid(format!(
        "the compressed request body is damaged after {expanded} bytes of its content: {cause}"
    ))
}

/// Whether data begins as either form does.
pub fn is_begun(data: &[u8]) -> bool {
    match data {
        [0x1f, 0x8b, ..] => true,
        // RFC 1950: the method is deflate, and both bytes together are a multiple of 31.
        [method, check, ..] => method & 0x0f == 8 && u16::from_be_bytes([*method, *check]) % 31 == 0,
        _ => false,
    }
}

/// Expanded bytes that are looked at together.
const EXPANDED_PIECE_BYTES: usize = 64 * 1024;

fn too_large(max_bytes: usize) -> InferError {
    let text = format!(
        "expanded request body exceeds the maximum allowed value of {max_bytes} bytes. \
         Use --http-max-input-size to increase the limit."
    );
    InferError::new(Code::TooLarge, text)
}

/// A body, compressed; none where it leaves as it is.
pub async fn compress(body: &[Bytes], coding: Coding) -> Option<Bytes> {
    let length: usize = body.iter().map(Bytes::len).sum();
    if length <= limits::HTTP_COMPRESS_AT_ONCE_BYTES {
        return compress_now(body, coding).ok();
    }
    let body = body.to_vec();
    offload(move || compress_now(&body, coding)).await?.ok()
}

fn compress_now(body: &[Bytes], coding: Coding) -> io::Result<Bytes> {
    // Numbers gain little from more effort, and the server's time is worth more than the last percent.
    let effort = Compression::fast();
    let compressed = match coding {
        Coding::Identity => return Err(io::Error::from(io::ErrorKind::Unsupported)),
        Coding::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), effort);
            body.iter().try_for_each(|slice| encoder.write_all(slice))?;
            encoder.finish()?
        }
        Coding::Deflate => {
            let mut encoder = ZlibEncoder::new(Vec::new(), effort);
            body.iter().try_for_each(|slice| encoder.write_all(slice))?;
            encoder.finish()?
        }
    };
    Ok(Bytes::from(compressed))
}

#[cfg(test)]
mod tests {
    use super::super::body::Expected;
    use super::*;
    use alipes_request::budget::Budget;

    fn compressed(body: &[u8], coding: Coding) -> Bytes {
        compress_now(&[Bytes::copy_from_slice(body)], coding).unwrap()
    }

    fn expanded(compressed: &[u8], header_length: Option<usize>, max_bytes: usize) -> Result<Vec<u8>, InferError> {
        let budget = Budget::new(u64::MAX);
        let expected = Expected { header_length, max_bytes: 0, memory: None, budget: &budget };
        expand_now(compressed, Received::new(&expected, 0), max_bytes).map(|(body, _)| match body {
            Body::Whole(whole) => whole.to_vec(),
            Body::Parts { .. } => panic!("a body in parts"),
        })
    }

    #[test]
    fn either_coding_leads_back_to_the_body() {
        let body: Vec<u8> = (0..300_000_u32).map(|number| (number / 7) as u8).collect();
        for coding in [Coding::Gzip, Coding::Deflate] {
            let small = compressed(&body, coding);
            assert!(small.len() < body.len());
            assert!(expanded(&small, Some(77), body.len()).unwrap() == body);
        }
    }

    #[test]
    fn members_of_gzip_behind_one_another_are_one_body() {
        let two = [compressed(b"one,", Coding::Gzip), compressed(b"two", Coding::Gzip)].concat();
        assert_eq!(expanded(&two, None, 7), Ok(b"one,two".to_vec()));
    }

    #[test]
    fn a_bomb_is_stopped_at_the_limit() {
        let bomb = compressed(&vec![0; 32 << 20], Coding::Gzip);
        assert!(bomb.len() < 1 << 20, "it is refused for what it becomes, not for what it is");
        let refused = expanded(&bomb, None, 1 << 20).unwrap_err();
        assert_eq!(refused.code, Code::TooLarge);
        assert!(expanded(&compressed(&[1; 1000], Coding::Deflate), None, 999).is_err());
        assert!(expanded(&compressed(&[1; 1000], Coding::Deflate), None, 1000).is_ok());
    }

    fn refusal(compressed: &[u8]) -> String {
        let refused = expanded(compressed, None, 1 << 20).unwrap_err();
        assert_eq!(refused.code, Code::InvalidArgument);
        assert!(refused.message.starts_with("the compressed request body is damaged after "), "{}", refused.message);
        refused.message
    }

    #[test]
    fn what_is_not_compressed_is_refused() {
        let header_alone = [&[0x1f, 0x8b, 8][..], &[0; 7]].concat();
        for body in [&b"{\"inputs\":[]}"[..], b"", b"\0", b"\x78\x01", b"\x1f\x8b", &header_alone] {
            assert!(refusal(body).contains("after 0 bytes"), "{body:?}: {}", refusal(body));
        }
    }

    #[test]
    fn compressed_data_is_known_by_its_first_bytes() {
        for coding in [Coding::Gzip, Coding::Deflate] {
            assert!(is_begun(&compressed(b"one", coding)));
        }
        assert!(![&b"{\"inputs\":[]}"[..], b"{", b"", b"\x78\x02"].into_iter().any(is_begun));
    }

    #[test]
    fn what_breaks_off_anywhere_is_refused() {
        let random: Vec<u8> = (0..300_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for coding in [Coding::Gzip, Coding::Deflate] {
            for body in [&b""[..], b"one", &random] {
                let whole = compressed(body, coding);
                (0..whole.len()).for_each(|end| drop(refusal(&whole[..end])));
            }
        }
        let members = [b"one", b"two"].map(|body| compressed(body, Coding::Gzip));
        let (first, whole) = (members[0].len(), members.concat());
        (first + 1..whole.len()).for_each(|end| drop(refusal(&whole[..end])));
        assert_eq!(expanded(&whole[..first], None, 100), Ok(b"one".to_vec()));
    }

    #[test]
    fn what_follows_the_end_is_refused() {
        for coding in [Coding::Gzip, Coding::Deflate] {
            let whole = compressed(b"one", coding);
            for tail in [&b"x"[..], b"{}", &compressed(b"two", Coding::Deflate)] {
                refusal(&[&whole, tail].concat());
            }
        }
        refusal(&[compressed(b"one", Coding::Deflate), compressed(b"two", Coding::Gzip)].concat());
    }

    #[test]
    fn the_client_chooses_by_quality() {
        let cases = [
            ("gzip", Coding::Gzip),
            ("gzip, deflate, br", Coding::Gzip),
            ("deflate, gzip", Coding::Deflate),
            ("gzip;q=0.2, deflate;q=0.8", Coding::Deflate),
            ("identity;q=1, gzip;q=0.5", Coding::Identity),
            ("gzip;q=0", Coding::Identity),
            ("gzip;q=x,deflate;q=0.1", Coding::Deflate),
            ("*", Coding::Identity),
            ("br", Coding::Identity),
            ("", Coding::Identity),
        ];
        for (accepted, coding) in cases {
            assert_eq!(preferred(accepted.as_bytes()), coding, "{accepted}");
        }
    }
}
