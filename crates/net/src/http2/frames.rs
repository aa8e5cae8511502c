//! The frame heads of HTTP/2 in a byte stream. Payloads are skipped.

use std::ops::ControlFlow;

/// Bytes in front of each frame.
const HEAD_BYTES: usize = 9;

/// Kinds of frames. Source: RFC 9113, section 6.
pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
#[cfg(test)]
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
#[cfg(test)]
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

/// Flags: of `SETTINGS` and `PING`, of `DATA` and `HEADERS`, and of `CONTINUATION`.
pub const ACK: u8 = 1;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

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

    /// Calls `see` for each frame whose head ends in these bytes, as long as it wants more. Returns how many bytes were
    /// passed: all, or those up to the end of the last head that it saw.
    #[inline]
    pub fn pass(&mut self, bytes: &[u8], mut see: impl FnMut(Frame) -> ControlFlow<()>) -> usize {
        let mut rest = bytes;
        loop {
            if self.skip >= rest.len() {
                self.skip -= rest.len();
                return bytes.len();
            }
            rest = &rest[self.skip..];
            self.skip = 0;
            let length = (HEAD_BYTES - self.have).min(rest.len());
            self.head[self.have..self.have + length].copy_from_slice(&rest[..length]);
            self.have += length;
            rest = &rest[length..];
            if self.have < HEAD_BYTES {
                return bytes.len();
            }
            let frame = Frame::of(self.head);
            (self.have, self.skip) = (0, frame.length);
            if see(frame).is_break() {
                return bytes.len() - rest.len();
            }
        }
    }
}

impl Frame {
    /// Whether a flag is set.
    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

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
            for piece in bytes.chunks(size) {
                let passed = parser.pass(piece, |frame| {
                    seen.push(frame);
                    ControlFlow::Continue(())
                });
                assert_eq!(passed, piece.len());
            }
            assert_eq!((seen.as_slice(), parser.is_between()), (frames.as_slice(), true), "pieces of {size}");
        }
    }
    #[test]
    fn a_reader_that_has_seen_enough_gets_no_further_frame() {
        let head = Frame { length: 4, kind: RST_STREAM, flags: 0, stream: 1 }.head();
        let bytes = [&head[..], &[0; 4]].concat().repeat(5);
        let (mut parser, mut rest, mut cuts) = (Frames::after(0), &bytes[..], Vec::new());
        while !rest.is_empty() {
            let mut seen = 0;
            let passed = parser.pass(rest, |_| {
                seen += 1;
                if seen < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            cuts.push((seen, passed));
            rest = &rest[passed..];
        }
        // Each time up to the head of the second frame; what is left of its payload comes with the next.
        assert_eq!(cuts, [(2, 22), (2, 26), (1, 17)]);
    }
}
