//! The frame heads of HTTP/2 in a byte stream. Payloads are skipped.

/// Bytes in front of each frame.
const HEAD_BYTES: usize = 9;

/// Kinds of frames. Source: RFC 9113, section 6.
pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
#[cfg(test)]
pub const WINDOW_UPDATE: u8 = 8;

/// Flags: of `SETTINGS` and `PING`, and of `DATA` and `HEADERS`.
pub const ACK: u8 = 1;
pub const END_STREAM: u8 = 1;

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    pub length: usize,
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
}

/// Finds frame heads in a byte stream.
pub struct Frames {
    /// Bytes to skip until the next head.
    skip: usize,
    /// The first bytes of a head that arrives in pieces.
    head: [u8; HEAD_BYTES],
    have: usize,
}

impl Frames {
    /// The first frame begins after `skip` bytes.
    pub fn after(skip: usize) -> Frames {
        Frames { skip, head: [0; HEAD_BYTES], have: 0 }
    }

    /// Whether the last byte ended a frame.
    pub fn is_between(&self) -> bool {
        self.skip == 0 && self.have == 0
    }

    /// Calls `see` for each frame whose head ends in these bytes.
    #[inline]
    pub fn pass(&mut self, mut bytes: &[u8], mut see: impl FnMut(Frame)) {
        loop {
            if self.skip >= bytes.len() {
                self.skip -= bytes.len();
                return;
            }
            bytes = &bytes[self.skip..];
            self.skip = 0;
            let length = (HEAD_BYTES - self.have).min(bytes.len());
            self.head[self.have..self.have + length].copy_from_slice(&bytes[..length]);
            self.have += length;
            bytes = &bytes[length..];
            if self.have < HEAD_BYTES {
                return;
            }
            let frame = Frame::of(self.head);
            (self.have, self.skip) = (0, frame.length);
            see(frame);
        }
    }
}

impl Frame {
    fn of([a, b, c, kind, flags, d, e, f, g]: [u8; HEAD_BYTES]) -> Frame {
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        Frame { length, kind, flags, stream: u32::from_be_bytes([d & 0x7f, e, f, g]) }
    }

    /// The head as it is sent.
    pub fn head(self) -> [u8; HEAD_BYTES] {
        let [_, a, b, c] = (self.length as u32).to_be_bytes();
        let [d, e, f, g] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, d, e, f, g]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_however_the_bytes_are_cut() {
        let frames = [
            Frame { length: 0, kind: SETTINGS, flags: 0, stream: 0 },
            Frame { length: 300, kind: DATA, flags: END_STREAM, stream: 7 },
            Frame { length: 8, kind: PING, flags: ACK, stream: 0 },
        ];
        let mut bytes = vec![0; 24];
        for frame in frames {
            bytes.extend_from_slice(&frame.head());
            bytes.resize(bytes.len() + frame.length, 0xff);
        }
        for size in 1..bytes.len() + 1 {
            let (mut parser, mut seen) = (Frames::after(24), Vec::new());
            bytes.chunks(size).for_each(|piece| parser.pass(piece, |frame| seen.push(frame)));
            assert_eq!((seen.as_slice(), parser.is_between()), (frames.as_slice(), true), "pieces of {size}");
        }
    }
}
