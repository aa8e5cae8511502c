//! The head of a call, written as a block: headers that the connection has sent before are sent as indices.

use std::time::Duration;

use bytes::{BufMut, BytesMut};
use http::Request;

use super::fields::{ENTRY_BYTES, FIRST_REMEMBERED, TABLE_BYTES};
use crate::error::ClientError;
use crate::grpc::call;
use crate::target::Target;

/// Numbers of what both sides know from the beginning.
const AUTHORITY: usize = 1;
const POST: u8 = 0x83;
const PATH: usize = 4;
const SCHEME_HTTP: u8 = 0x86;
const SCHEME_HTTPS: u8 = 0x87;

/// A name: one that both sides know, or another.
enum Name<'a> {
    Known(usize),
    New(&'a str),
}

/// The request headers that the server remembers on a connection.
#[derive(Default)]
pub struct Heads {
    remembered: Vec<(Box<str>, Box<[u8]>)>,
    bytes: usize,
    /// Bytes that the server remembers where that is less than the usual, and whether the new size was announced.
    most: Option<(usize, bool)>,
    /// A whole block in numbers, and what it says.
    last: Option<Last>,
}

struct Last {
    method: String,
    limit: Option<Duration>,
    block: Vec<u8>,
}

impl Heads {
    /// Appends the block that opens a call of `method`.
    ///
    /// # Errors
    /// Headers of the target that cannot be sent; nothing was appended then.
    pub fn write(
        &mut self,
        target: &Target,
        method: &str,
        limit: Option<Duration>,
        block: &mut BytesMut,
    ) -> Result<(), ClientError> {
        // The server receives the limit in milliseconds.
        let limit = limit.map(|limit| Duration::from_millis(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)));
        if let Some(last) = self.last.as_ref().filter(|last| last.method == method && last.limit == limit) {
            block.extend_from_slice(&last.block);
            return Ok(());
        }
        let request = call::head(target, method, limit)?;
        let (start, known) = (block.len(), self.remembered.len());
        self.announce_most(block);
        self.write_all(&request, block);
        self.last = (self.remembered.len() == known).then(|| Last {
            method: method.to_owned(),
            limit,
            block: block[start..].to_vec(),
        });
        Ok(())
    }

    /// Appends a header that differs from call to call, which the server does not remember.
    pub fn add(name: &str, value: &str, block: &mut BytesMut) {
        block.put_u8(0);
        string(name.as_bytes(), block);
        string(value.as_bytes(), block);
    }

    /// The server remembers so many bytes.
    pub fn set_most(&mut self, bytes: usize) {
        if bytes < self.most.map_or(TABLE_BYTES, |(most, _)| most) {
            self.most = Some((bytes, false));
            self.remembered.clear();
            self.bytes = 0;
            self.last = None;
        }
    }

    /// Empties the table of both sides, and then sets it to the size that the server allows.
    fn announce_most(&mut self, block: &mut BytesMut) {
        if let Some((most, announced @ false)) = &mut self.most {
            *announced = true;
            number(0x20, 5, 0, block);
            number(0x20, 5, *most, block);
        }
    }

    fn write_all(&mut self, request: &Request<()>, block: &mut BytesMut) {
        let uri = request.uri();
        block.put_u8(POST);
        block.put_u8(if uri.scheme_str() == Some("https") { SCHEME_HTTPS } else { SCHEME_HTTP });
        self.field(&Name::Known(PATH), ":path", uri.path().as_bytes(), block);
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        self.field(&Name::Known(AUTHORITY), ":authority", authority.as_bytes(), block);
        for (name, value) in request.headers() {
            self.field(&Name::New(name.as_str()), name.as_str(), value.as_bytes(), block);
        }
    }

    fn field(&mut self, name: &Name<'_>, text: &str, value: &[u8], block: &mut BytesMut) {
        let place = self.remembered.iter().position(|(known, held)| **known == *text && **held == *value);
        if let Some(place) = place {
            number(0x80, 7, FIRST_REMEMBERED + (self.remembered.len() - 1 - place), block);
            return;
        }
        let size = text.len() + value.len() + ENTRY_BYTES;
        // Nothing is ever evicted, so that indices stay simple to compute.
        let fits = self.bytes + size <= self.most.map_or(TABLE_BYTES, |(most, _)| most.min(TABLE_BYTES));
        let (mark, bits) = if fits { (0x40, 6) } else { (0, 4) };
        match name {
            Name::Known(index) => number(mark, bits, *index, block),
            Name::New(name) => {
                block.put_u8(mark);
                string(name.as_bytes(), block);
            }
        }
        string(value, block);
        if fits {
            self.bytes += size;
            self.remembered.push((text.into(), value.into()));
        }
    }
}

fn string(text: &[u8], block: &mut BytesMut) {
    number(0, 7, text.len(), block);
    block.extend_from_slice(text);
}

/// A number behind the mark in its first byte, of which it may use so many bits.
fn number(mark: u8, bits: u32, value: usize, block: &mut BytesMut) {
    let most = (1_usize << bits) - 1;
    if value < most {
        block.put_u8(mark | value as u8);
        return;
    }
    block.put_u8(mark | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        block.put_u8(rest as u8 | 0x80);
        rest >>= 7;
    }
    block.put_u8(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::super::fields::Fields;
    use super::*;
    use crate::target::Wire;

    fn target(headers: &[(&str, &str)]) -> Target {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Target::new("localhost:1", Wire::Grpc, headers, Duration::ZERO).unwrap()
    }

    fn read(fields: &mut Fields, block: &[u8]) -> Vec<String> {
        let mut all = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        fields.read(block, |name, value| all.push(format!("{}={}", text(name), text(value)))).unwrap();
        all
    }

    #[test]
    fn blocks_say_the_same_in_ever_fewer_bytes() {
        let target = target(&[("authorization", "Bearer x"), ("a", "1"), ("a", "2")]);
        let (mut heads, mut fields, mut sizes) = (Heads::default(), Fields::default(), Vec::new());
        for (method, millis) in [("A", 1000), ("A", 1000), ("A", 1000), ("B", 1000), ("A", 999), ("A", 1000)] {
            let mut block = BytesMut::new();
            heads.write(&target, method, Some(Duration::from_millis(millis)), &mut block).unwrap();
            let headers = read(&mut fields, &block);
            assert_eq!(headers[..2], [":method=POST", ":scheme=http"]);
            assert_eq!(headers[2], format!(":path=/inference.GRPCInferenceService/{method}"));
            for header in [":authority=localhost:1", "te=trailers", "authorization=Bearer x", "a=1", "a=2"] {
                assert!(headers.iter().any(|seen| seen == header), "{header} is not in {headers:?}");
            }
            assert!(headers.contains(&format!("grpc-timeout={millis}m")), "{headers:?}");
            sizes.push(block.len());
        }
        assert!(sizes[0] > 100 && sizes[1] < 16 && sizes[2] == sizes[1] && sizes[5] == sizes[1], "{sizes:?}");
    }

    #[test]
    fn a_server_with_a_small_table_gets_every_header_in_full() {
        let target = target(&[]);
        let (mut heads, mut fields) = (Heads::default(), Fields::default());
        let mut first = Vec::new();
        for round in 0..3 {
            let mut block = BytesMut::new();
            heads.write(&target, "A", None, &mut block).unwrap();
            let headers = read(&mut fields, &block);
            first = if round == 0 { headers.clone() } else { first };
            assert_eq!(headers, first);
            heads.set_most(64);
        }
    }

    #[test]
    fn many_different_heads_are_sent_in_full() {
        let target = target(&[]);
        let (mut heads, mut fields) = (Heads::default(), Fields::default());
        for number in 0..300 {
            let mut block = BytesMut::new();
            let method = format!("Method{number}");
            heads.write(&target, &method, None, &mut block).unwrap();
            let headers = read(&mut fields, &block);
            assert_eq!(headers[2], format!(":path=/inference.GRPCInferenceService/{method}"));
            assert_eq!(headers[3], ":authority=localhost:1");
        }
    }

    #[test]
    fn a_header_that_cannot_be_sent_leaves_nothing_behind() {
        let mut block = BytesMut::new();
        assert!(Heads::default().write(&target(&[("grpc-x", "1")]), "A", None, &mut block).is_err());
        assert!(block.is_empty());
    }
}
