//! Reading a frame that may hold anything.

use super::writer::data_start;

/// What a frame does not have, though it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub &'static str);

/// The rest of a description.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A frame's description, and where its tensors begin.
    pub fn new(frame: &'a [u8]) -> Result<(Reader<'a>, usize), Malformed> {
        let (length, _) = frame.split_first_chunk::<4>().ok_or(Malformed("a frame of at least 4 bytes"))?;
        let length = u32::from_le_bytes(*length) as usize;
        let rest = frame.get(4..length).ok_or(Malformed("a description within its frame"))?;
        Ok((Reader { rest }, data_start(length)))
    }

    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(Malformed("as many bytes as announced"))?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Malformed("a number"))?;
        self.rest = rest;
        Ok(*bytes)
    }

    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_le_bytes)
    }

    pub fn bool(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed("0 or 1 for a truth value")),
        }
    }

    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn i64(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_le_bytes)
    }

    pub fn text(&mut self) -> Result<String, Malformed> {
        let len = self.u32()? as usize;
        let text = str::from_utf8(self.bytes(len)?).map_err(|_| Malformed("a text in UTF-8"))?;
        Ok(text.to_owned())
    }

    pub fn optional_text(&mut self) -> Result<Option<String>, Malformed> {
        if self.bool()? { self.text().map(Some) } else { Ok(None) }
    }

    /// A counted list. It grows with what is there, whatever number is announced.
    pub fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T, Malformed>) -> Result<Vec<T>, Malformed> {
        let count = self.u32()?;
        // Every item has at least a byte, so that a small lie is found out before memory is set aside for it.
        if count as usize > self.rest.len() {
            return Err(Malformed("as many items as announced"));
        }
        let mut items = Vec::with_capacity((count as usize).min(16));
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Everything was read.
    pub fn end(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed("the end of the description")) }
    }
}
