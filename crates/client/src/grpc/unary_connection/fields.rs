//! Reads header blocks of HTTP/2: names and values, some of which are indices of earlier ones.

#[cfg(test)]
mod fuzz;

use std::borrow::Cow;
use std::collections::VecDeque;

use super::huffman;

/// Most bytes of headers that are remembered for later blocks, unless a client says otherwise. Source: RFC 9113, 6.5.2.
pub const TABLE_BYTES: usize = 4096;

/// What a header takes in that memory beside its bytes. Source: RFC 7541, 4.1.
pub const ENTRY_BYTES: usize = 32;

/// The headers that both sides know from the beginning, by number, which begins with 1. Source: RFC 7541, appendix A.
#[rustfmt::skip]
const KNOWN: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"), (":scheme", "http"),
    (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"), (":status", "304"), (":status", "400"),
    (":status", "404"), (":status", "500"), ("accept-charset", ""), ("accept-encoding", "gzip, deflate"), ("accept-language", ""),
    ("accept-ranges", ""), ("accept", ""), ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""),
    ("cache-control", ""), ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""), ("date", ""), ("etag", ""), ("expect", ""),
    ("expires", ""), ("from", ""), ("host", ""), ("if-match", ""), ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""),
    ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""), ("location", ""), ("max-forwards", ""), ("proxy-authenticate", ""),
    ("proxy-authorization", ""), ("range", ""), ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""), ("via", ""), ("www-authenticate", ""),
];

/// Number of the header that was remembered last.
pub const FIRST_REMEMBERED: usize = KNOWN.len() + 1;

type Field = (Vec<u8>, Vec<u8>);

/// A header as it stands in a block, or as it was remembered.
type Read<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// What the blocks of one connection have in common.
#[derive(Default)]
pub struct Fields {
    /// The newest first.
    remembered: VecDeque<Field>,
    bytes: usize,
    /// Where the server has said that it uses less than it may.
    most: Option<usize>,
}

impl Fields {
    /// Reads a block; `None` where it is none, after which no other can be read.
    pub fn read(&mut self, mut block: &[u8], mut visit: impl FnMut(&[u8], &[u8])) -> Option<()> {
        while let Some(first) = block.first().copied() {
            if first & 0x80 != 0 {
                let index = number(&mut block, 7)?;
                let (name, value) = self.field(index)?;
                visit(name, value);
            } else if first & 0x40 != 0 {
                let (name, value) = self.literal(&mut block, 6)?;
                visit(&name, &value);
                self.remember((name.into_owned(), value.into_owned()));
            } else if first & 0x20 != 0 {
                let most = number(&mut block, 5)?;
                self.most = Some((most <= TABLE_BYTES).then_some(most)?);
                self.forget(0);
            } else {
                let (name, value) = self.literal(&mut block, 4)?;
                visit(&name, &value);
            }
        }
        Some(())
    }

    fn literal<'a>(&self, block: &mut &'a [u8], bits: u32) -> Option<Read<'a>> {
        let name = match number(block, bits)? {
            0 => string(block)?,
            index => Cow::Owned(self.field(index)?.0.to_vec()),
        };
        Some((name, string(block)?))
    }

    fn field(&self, index: usize) -> Option<(&[u8], &[u8])> {
        match KNOWN.get(index.checked_sub(1)?) {
            Some((name, value)) => Some((name.as_bytes(), value.as_bytes())),
            None => self.remembered.get(index - FIRST_REMEMBERED).map(|(name, value)| (&name[..], &value[..])),
        }
    }

    fn remember(&mut self, field: Field) {
        let size = size(&field);
        self.forget(size);
        if size <= self.most.unwrap_or(TABLE_BYTES) {
            self.bytes += size;
            self.remembered.push_front(field);
        }
    }

    /// Forgets the oldest until there is room for so many bytes, or nothing is left.
    fn forget(&mut self, room: usize) {
        while self.bytes + room > self.most.unwrap_or(TABLE_BYTES) {
            let Some(oldest) = self.remembered.pop_back() else { return };
            self.bytes -= size(&oldest);
        }
    }
}

fn size((name, value): &Field) -> usize {
    name.len() + value.len() + ENTRY_BYTES
}

/// A number whose first `bits` bits are the last of the block's first byte.
fn number(block: &mut &[u8], bits: u32) -> Option<usize> {
    let (first, mut rest) = block.split_first()?;
    let most = (1 << bits) - 1;
    let mut value = usize::from(*first) & most;
    if value == most {
        // Three further bytes are more than any block has.
        for shift in [0, 7, 14, 21] {
            let (byte, tail) = rest.split_first()?;
            rest = tail;
            value += usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                *block = rest;
                return Some(value);
            }
        }
        return None;
    }
    *block = rest;
    Some(value)
}

fn string<'a>(block: &mut &'a [u8]) -> Option<Cow<'a, [u8]>> {
    let is_coded = block.first()? & 0x80 != 0;
    let length = number(block, 7)?;
    let (text, rest) = block.split_at_checked(length)?;
    *block = rest;
    if is_coded { huffman::decode(text).map(Cow::Owned) } else { Some(Cow::Borrowed(text)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &mut Fields, block: &[u8]) -> Option<Vec<(String, String)>> {
        let mut all = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        fields.read(block, |name, value| all.push((text(name), text(value))))?;
        Some(all)
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn a_repeated_header_is_sent_by_its_number() {
        let mut fields = Fields::default();
        let block = b"\x40\x0acustom-key\x0dcustom-header\x88";
        let custom = pair("custom-key", "custom-header");
        assert_eq!(read(&mut fields, block), Some(vec![custom.clone(), pair(":status", "200")]));
        assert_eq!(read(&mut fields, &[0xbe]), Some(vec![custom.clone()]));
        // Another header takes its index, and a block may use only the name of an earlier one.
        assert_eq!(read(&mut fields, b"\x7e\x01x\xbf"), Some(vec![pair("custom-key", "x"), custom]));
    }

    #[test]
    fn the_oldest_is_forgotten_where_room_is_needed() {
        let mut fields = Fields::default();
        let long = "x".repeat(2100);
        let literal = |name: &str| {
            let mut block = vec![0x40, 1];
            block.extend_from_slice(name.as_bytes());
            block.extend_from_slice(&[0x7f, 0xb5, 0x0f]);
            block.extend_from_slice(long.as_bytes());
            block
        };
        assert_eq!(read(&mut fields, &literal("a")), Some(vec![pair("a", &long)]));
        assert_eq!(read(&mut fields, &literal("b")), Some(vec![pair("b", &long)]));
        assert_eq!(read(&mut fields, &[0xbe]), Some(vec![pair("b", &long)]));
        assert_eq!(read(&mut fields, &[0xbf]), None);
        // A server may say that it remembers nothing any more.
        assert_eq!(read(&mut fields, &[0x20, 0xbe]), None);
    }

    #[test]
    fn what_is_no_block_is_refused() {
        for block in
            [&[0x80][..], &[0xff], &[0xff, 0xff, 0xff, 0xff, 0xff, 1], &[0x40, 5, b'a'], &[0x3f, 0xff, 0xff, 1]]
        {
            assert_eq!(read(&mut Fields::default(), block), None, "{block:?}");
        }
    }
}
