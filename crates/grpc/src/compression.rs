//! Compressed messages, both ways: gzip and deflate.
//!
//! A few bytes can become many, and to compress a large answer takes milliseconds: all but small messages are worked on
//! off the network threads.

use std::io::{self, Write};
use std::sync::Arc;

use alipes_protocol::codec::proto::Pieces;
use alipes_protocol::{Code, InferError};
use alipes_request::budget::{Budget, Charge};
use alipes_service::offload::offload;
use alipes_spec::CompressionLevel;
use bytes::Bytes;
use flate2::write::{GzEncoder, ZlibEncoder};
use flate2::{Compression, Decompress, FlushDecompress};
use http::{HeaderMap, HeaderName, HeaderValue};

pub(super) const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
pub(super) const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// What is understood, as refusals tell it.
pub(super) const OFFERED: HeaderValue = HeaderValue::from_static("identity,deflate,gzip");

/// A compressed message up to this size, in bytes, is expanded on the spot: at the thousandfold that deflate can reach,
/// that takes a few milliseconds, and with honest messages a few microseconds.
const EXPAND_HERE_BYTES: usize = 4 * 1024;

/// An answer up to this size, in bytes, is compressed on the spot, which takes about a millisecond at most.
pub(super) const COMPRESS_HERE_BYTES: usize = 32 * 1024;

/// Largest step in which room is made for an expanded message: a message gets more once it has filled what it has.
const ROOM_BYTES: usize = 1 << 20;

/// Bits of the window that gzip uses; the largest there is.
const WINDOW_BITS: u8 = 15;

/// How messages are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Not at all.
    #[default]
    Identity,
    /// RFC 1952.
    Gzip,
    /// RFC 1950, which gRPC calls deflate.
    Deflate,
}

impl Encoding {
    fn named(name: &[u8]) -> Option<Encoding> {
        match name {
            b"identity" => Some(Encoding::Identity),
            b"gzip" => Some(Encoding::Gzip),
            b"deflate" => Some(Encoding::Deflate),
            _ => None,
        }
    }

    /// The value of `grpc-encoding`; none where nothing is compressed.
    pub(super) fn header(self) -> Option<HeaderValue> {
        match self {
            Encoding::Identity => None,
            Encoding::Gzip => Some(HeaderValue::from_static("gzip")),
            Encoding::Deflate => Some(HeaderValue::from_static("deflate")),
        }
    }

    /// How the compressed messages of a call are compressed.
    ///
    /// # Errors
    ///
    /// `Unsupported` for an encoding that is not known here.
    pub(super) fn of_request(headers: &HeaderMap) -> Result<Encoding, InferError> {
        let Some(name) = headers.get(GRPC_ENCODING) else { return Ok(Encoding::Identity) };
        Encoding::named(name.as_bytes()).ok_or_else(|| {
            let text = format!("encoding {name:?} is not understood, expected identity, deflate or gzip");
            InferError::new(Code::Unsupported, text)
        })
    }
}

/// How an answer is compressed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Press {
    pub(super) encoding: Encoding,
    effort: Compression,
}

impl Press {
    /// What compresses the answers to a client at a level; none where they leave as they are.
    ///
    /// Levels choose among the encodings that a client reads as gRPC itself does: of gzip and deflate, in this order,
    /// `low` takes the first and `high` the last.
    pub(super) fn of(headers: &HeaderMap, level: CompressionLevel) -> Option<Press> {
        let effort = match level {
            CompressionLevel::None => return None,
            CompressionLevel::Low => Compression::new(1),
            CompressionLevel::Medium => Compression::new(6),
            CompressionLevel::High => Compression::new(9),
        };
        let accepted = headers.get(GRPC_ACCEPT_ENCODING)?.as_bytes();
        let accepts = |encoding: &Encoding| {
            accepted.split(|&byte| byte == b',').any(|name| Encoding::named(name.trim_ascii()) == Some(*encoding))
        };
        let ranked: Vec<Encoding> = [Encoding::Gzip, Encoding::Deflate].into_iter().filter(accepts).collect();
        let encoding = match level {
            CompressionLevel::Low => ranked.first(),
            CompressionLevel::Medium => ranked.get(ranked.len() / 2),
            _ => ranked.last(),
        };
        encoding.map(|&encoding| Press { encoding, effort })
    }

    /// The compressed message; none where it would be no smaller.
    pub(super) async fn apply(self, pieces: Pieces) -> Option<Vec<u8>> {
        if length(&pieces) <= COMPRESS_HERE_BYTES {
            return self.apply_here(&pieces);
        }
        offload(move || self.apply_here(&pieces)).await.flatten()
    }

    /// The message, compressed on the calling thread; none where it would be no smaller.
    pub(super) fn apply_here(self, pieces: &[Bytes]) -> Option<Vec<u8>> {
        let compressed = match self.encoding {
            Encoding::Identity => return None,
            Encoding::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), self.effort);
                write_all(&mut encoder, pieces).and_then(|()| encoder.finish())
            }
            Encoding::Deflate => {
                let mut encoder = ZlibEncoder::new(Vec::new(), self.effort);
                write_all(&mut encoder, pieces).and_then(|()| encoder.finish())
            }
        };
        compressed.ok().filter(|compressed| compressed.len() < length(pieces))
    }
}

fn write_all(encoder: &mut impl Write, pieces: &[Bytes]) -> io::Result<()> {
    pieces.iter().try_for_each(|piece| encoder.write_all(piece))
}

fn length(pieces: &[Bytes]) -> usize {
    pieces.iter().map(Bytes::len).sum()
}

/// A message as it was before it was compressed, and what it is charged.
pub(super) type Expanded = Result<(Bytes, Charge), InferError>;

/// Expands a message to at most `most` bytes, under a charge of its own.
///
/// # Errors
///
/// `TooLarge` beyond them, `Overloaded` where there is no room for it now, `Internal` for bytes that are not compressed
/// so.
pub(super) async fn expand(
    (message, charge): (Bytes, Charge),
    encoding: Encoding,
    most: usize,
    budget: Arc<Budget>,
) -> Expanded {
    if message.len() <= EXPAND_HERE_BYTES {
        return expand_here(&message, encoding, most, &budget);
    }
    let expanded = offload(move || {
        let expanded = expand_here(&message, encoding, most, &budget);
        drop((message, charge));
        expanded
    });
    expanded.await.unwrap_or_else(|| Err(broken("the request message could not be expanded")))
}

fn expand_here(message: &[u8], encoding: Encoding, most: usize, budget: &Arc<Budget>) -> Expanded {
    let mut decoder = match encoding {
        Encoding::Identity => return Err(broken("a compressed request message comes without grpc-encoding")),
        Encoding::Gzip => Decompress::new_gzip(WINDOW_BITS),
        Encoding::Deflate => Decompress::new(true),
    };
    let (mut expanded, mut charge) = (Vec::new(), Charge::default());
    loop {
        let (read, written) = (decoder.total_in() as usize, expanded.len());
        if written == expanded.capacity() {
            // One byte more than allowed, to see that there is more.
            let room = (4 * message.len()).max(written).clamp(64, ROOM_BYTES).min(most.saturating_add(1) - written);
            charge.grow(budget, written + room)?;
            expanded.reserve_exact(room);
        }
        let status = decoder
            .decompress_vec(&message[read..], &mut expanded, FlushDecompress::None)
            .map_err(|_| broken("the request message is not compressed as its grpc-encoding says"))?;
        if expanded.len() > most {
            let text = format!("request message expands to more than the limit of {most} bytes");
            return Err(InferError::new(Code::TooLarge, text));
        }
        let read_now = decoder.total_in() as usize;
        match status {
            flate2::Status::StreamEnd if read_now == message.len() => return Ok((expanded.into(), charge)),
            flate2::Status::StreamEnd => return Err(broken("bytes follow the end of the compressed request message")),
            _ if read_now == read && expanded.len() == written => {
                return Err(broken("the compressed request message ends early"));
            }
            _ => {}
        }
    }
}

fn broken(text: &str) -> InferError {
    InferError::internal(text)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const ENCODINGS: [Encoding; 2] = [Encoding::Gzip, Encoding::Deflate];

    fn compressed(message: &[u8], encoding: Encoding) -> Vec<u8> {
        let press = Press { encoding, effort: Compression::new(6) };
        press.apply_here(&[Bytes::copy_from_slice(message)]).expect("it becomes smaller")
    }

    /// The message, expanded under a budget that has room for everything.
    fn expand_here(message: &[u8], encoding: Encoding, most: usize) -> Result<Bytes, InferError> {
        super::expand_here(message, encoding, most, &Budget::new(u64::MAX)).map(|(expanded, _)| expanded)
    }

    #[test]
    fn expansion_is_charged_and_stops_at_the_limit() {
        let budget = Budget::new(1 << 20);
        let wire = compressed(&vec![7; 500_000], Encoding::Gzip);
        let (expanded, charge) = super::expand_here(&wire, Encoding::Gzip, usize::MAX, &budget).unwrap();
        assert!(budget.used() >= expanded.len() as u64);
        let refused = super::expand_here(&wire, Encoding::Gzip, usize::MAX, &Budget::new(400_000)).unwrap_err();
        assert_eq!(refused.code, Code::Overloaded);
        drop(charge);
        assert_eq!(budget.used(), 0);
    }

    fn message() -> Vec<u8> {
        (0..200_000u32).flat_map(|number| (number / 7).to_le_bytes()).collect()
    }

    proptest! {
        #[test]
        fn any_bytes_expand_within_the_bound_or_are_refused(bytes in vec(any::<u8>(), 0..400), most in 0usize..5000) {
            for encoding in ENCODINGS {
                if let Ok(expanded) = expand_here(&bytes, encoding, most) {
                    prop_assert!(expanded.len() <= most);
                }
            }
        }

        #[test]
        fn what_shrinks_comes_back_whatever_it_was(message in vec(0u8..4, 0..5000)) {
            for encoding in ENCODINGS {
                let press = Press { encoding, effort: Compression::new(6) };
                if let Some(wire) = press.apply_here(&[Bytes::from(message.clone())]) {
                    prop_assert_eq!(&expand_here(&wire, encoding, message.len()).unwrap(), &message);
                }
            }
        }
    }

    #[test]
    fn a_message_comes_back_as_it_went() {
        for encoding in ENCODINGS {
            let wire = compressed(&message(), encoding);
            assert_eq!(expand_here(&wire, encoding, message().len()).unwrap(), message());
        }
    }

    #[test]
    fn a_message_may_be_as_large_as_the_limit_and_no_larger() {
        for encoding in ENCODINGS {
            let wire = compressed(&[7; 10_000], encoding);
            assert_eq!(expand_here(&wire, encoding, 10_000).unwrap().len(), 10_000);
            let error = expand_here(&wire, encoding, 9_999).unwrap_err();
            assert_eq!(error.message, "request message expands to more than the limit of 9999 bytes");
        }
    }

    #[test]
    fn a_message_that_is_cut_or_followed_by_something_is_refused() {
        for encoding in ENCODINGS {
            let wire = compressed(&message(), encoding);
            for end in [0, 1, 5, wire.len() / 2, wire.len() - 5, wire.len() - 1] {
                let error = expand_here(&wire[..end], encoding, usize::MAX).unwrap_err();
                assert_eq!(error.message, "the compressed request message ends early", "{encoding:?}, {end} bytes");
            }
            let followed = [wire.as_slice(), b"x"].concat();
            assert!(expand_here(&followed, encoding, usize::MAX).is_err());
            assert!(expand_here(b"not compressed at all", encoding, usize::MAX).is_err());
        }
        assert!(expand_here(b"x", Encoding::Identity, 10).is_err());
    }

    #[test]
    fn a_damaged_message_hurts_nobody() {
        for encoding in ENCODINGS {
            let wire = compressed(&message()[..4000], encoding);
            for at in 0..wire.len() {
                let mut damaged = wire.clone();
                damaged[at] ^= 0x55;
                let _ = expand_here(&damaged, encoding, 1 << 20);
            }
        }
    }

    #[test]
    fn what_does_not_shrink_stays_as_it_is() {
        let press = Press { encoding: Encoding::Gzip, effort: Compression::new(1) };
        assert_eq!(press.apply_here(&[Bytes::from_static(b"abc")]), None);
    }

    #[test]
    fn levels_choose_as_grpc_does() {
        use CompressionLevel::{High, Low, Medium, None as Off};
        let choice = |accepted: &'static str, level| {
            let headers = HeaderMap::from_iter([(GRPC_ACCEPT_ENCODING, HeaderValue::from_static(accepted))]);
            Press::of(&headers, level).map(|press| press.encoding)
        };
        let all = "identity, deflate, gzip";
        assert_eq!([Low, Medium, High].map(|level| choice(all, level).unwrap()), {
            [Encoding::Gzip, Encoding::Deflate, Encoding::Deflate]
        });
        assert_eq!(choice("identity,gzip", High), Some(Encoding::Gzip));
        assert_eq!(choice("identity,zstd", High), None);
        assert_eq!(choice(all, Off), None);
        assert!(Press::of(&HeaderMap::new(), High).is_none());
    }

    #[test]
    fn an_unknown_encoding_is_refused_by_name() {
        let headers = HeaderMap::from_iter([(GRPC_ENCODING, HeaderValue::from_static("zstd"))]);
        let error = Encoding::of_request(&headers).unwrap_err();
        assert_eq!(error.message, "encoding \"zstd\" is not understood, expected identity, deflate or gzip");
    }
}
