//! Frames of HTTP/2: what stands in front of each, and those that a client sends. Source: RFC 9113.

use bytes::{BufMut, BytesMut};

/// The connection preface of a client.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes in front of a frame.
pub const HEAD_BYTES: usize = 9;

/// Largest frame that a server takes unless its settings say otherwise.
pub const DEFAULT_FRAME_BYTES: usize = 16 * 1024;
/// Window that a server opens unless its settings say otherwise.
pub const DEFAULT_WINDOW_BYTES: i64 = 65_535;

/// Largest frame of all: its length has three bytes.
pub const LARGEST_FRAME_BYTES: usize = (1 << 24) - 1;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

/// Of `DATA` and `HEADERS`: nothing follows in this call.
pub const END_STREAM: u8 = 0x1;
/// Of `SETTINGS` and `PING`: an answer.
pub const ACK: u8 = 0x1;
/// Of `HEADERS` and `CONTINUATION`: the block ends here.
pub const END_HEADERS: u8 = 0x4;
/// Of `DATA` and `HEADERS`: bytes behind that mean nothing.
pub const PADDED: u8 = 0x8;
/// Of `HEADERS`: five bytes in front that mean nothing any more.
pub const PRIORITY: u8 = 0x20;

/// What a ping carries.
pub const PING_BYTES: usize = 8;

/// Numbers of settings.
pub const HEADER_TABLE_SIZE: u16 = 1;
pub const ENABLE_PUSH: u16 = 2;
pub const INITIAL_WINDOW_SIZE: u16 = 4;
pub const MAX_FRAME_SIZE: u16 = 5;

/// What stands in front of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    pub length: usize,
    pub kind: u8,
    pub flags: u8,
    pub call: u32,
}

impl FrameHead {
    /// Reads it.
    pub fn read(bytes: &[u8; HEAD_BYTES]) -> FrameHead {
        let [a, b, c, kind, flags, call @ ..] = *bytes;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        FrameHead { length, kind, flags, call: u32::from_be_bytes(call) & i32::MAX as u32 }
    }

    /// Appends it.
    pub fn write(&self, buffer: &mut BytesMut) {
        buffer.put_uint(self.length as u64, 3);
        buffer.put_u8(self.kind);
        buffer.put_u8(self.flags);
        buffer.put_u32(self.call);
    }
}

/// Appends settings.
pub fn settings(pairs: &[(u16, u32)], buffer: &mut BytesMut) {
    FrameHead { length: pairs.len() * 6, kind: SETTINGS, flags: 0, call: 0 }.write(buffer);
    for (number, value) in pairs {
        buffer.put_u16(*number);
        buffer.put_u32(*value);
    }
}

/// Appends leave to send so many further bytes, for a call or, with 0, for all of them together.
pub fn window(call: u32, bytes: u32, buffer: &mut BytesMut) {
    FrameHead { length: 4, kind: WINDOW_UPDATE, flags: 0, call }.write(buffer);
    buffer.put_u32(bytes);
}

/// Appends an answer to settings or a ping.
pub fn acknowledgement(kind: u8, content: &[u8], buffer: &mut BytesMut) {
    FrameHead { length: content.len(), kind, flags: ACK, call: 0 }.write(buffer);
    buffer.extend_from_slice(content);
}

/// What is left of a frame's content without padding and priority; `None` where it contradicts itself.
pub fn content(head: FrameHead, mut bytes: &[u8]) -> Option<std::ops::Range<usize>> {
    let (mut start, mut end) = (0, bytes.len());
    if head.flags & PADDED != 0 {
        let (padding, rest) = bytes.split_first()?;
        bytes = rest;
        start += 1;
        end = end.checked_sub(usize::from(*padding))?;
    }
    if head.kind == HEADERS && head.flags & PRIORITY != 0 {
        bytes.get(..5)?;
        start += 5;
    }
    (start <= end).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_as_they_are_written() {
        let head = FrameHead { length: 0x01_02_03, kind: DATA, flags: END_STREAM, call: 0x7fff_fffd };
        let mut buffer = BytesMut::new();
        head.write(&mut buffer);
        assert_eq!(FrameHead::read(buffer[..].try_into().unwrap()), head);
    }

    #[test]
    fn padding_and_priority_are_no_content() {
        let head = |kind, flags| FrameHead { length: 0, kind, flags, call: 1 };
        assert_eq!(content(head(DATA, 0), b"abc"), Some(0..3));
        assert_eq!(content(head(DATA, PADDED), b"\x02abc"), Some(1..2));
        assert_eq!(content(head(DATA, PADDED), b"\x04abc"), None);
        assert_eq!(content(head(HEADERS, PADDED | PRIORITY), b"\x01\0\0\0\0\0ab"), Some(6..7));
        assert_eq!(content(head(HEADERS, PRIORITY), b"\0\0"), None);
    }
}
