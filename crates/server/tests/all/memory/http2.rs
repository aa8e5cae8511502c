//! HTTP/2 frame by frame, for what no library would send.

use super::Connection;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const ACK: u8 = 1;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

pub const ENHANCE_YOUR_CALM: u32 = 11;

/// The setting that gives the client's calls no window at all.
pub const NO_WINDOW: &[u8] = &[0, 4, 0, 0, 0, 0];

/// A frame as it came.
#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    /// Why a connection or a call ends.
    pub fn error_code(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }

    /// Whether it is the last frame of its call.
    pub fn ends_call(&self) -> bool {
        self.kind == RST_STREAM || (matches!(self.kind, HEADERS | DATA) && self.flags & END_STREAM != 0)
    }
}

impl Connection {
    /// Says what a client of HTTP/2 says first.
    pub async fn begin_http2(&mut self, settings: &[u8]) {
        assert!(self.send([PREFACE, &frame(SETTINGS, 0, 0, settings)].concat()).await);
    }

    /// The next frame; none if the server closes.
    pub async fn frame(&mut self) -> Option<Frame> {
        let head = self.read(9).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let stream = u32::from_be_bytes(head[5..].try_into().unwrap());
        Some(Frame { kind: head[3], flags: head[4], stream, payload: self.read(length).await? })
    }

    /// The next frame of a kind.
    pub async fn next(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.frame().await.unwrap_or_else(|| panic!("closed before a frame of kind {kind} came"));
            if frame.kind == kind {
                return frame;
            }
        }
    }

    /// Reads until the server closes; the last GOAWAY that it sent.
    pub async fn goaway(&mut self) -> Option<Frame> {
        let mut last = None;
        while let Some(frame) = self.frame().await {
            if frame.kind == GOAWAY {
                last = Some(frame);
            }
        }
        last
    }
}

/// The whole frames in these bytes.
pub fn frames(mut bytes: &[u8]) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = bytes.split_at_checked(9) {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let stream = u32::from_be_bytes(head[5..].try_into().unwrap());
        let Some((payload, rest)) = rest.split_at_checked(length) else { break };
        frames.push(Frame { kind: head[3], flags: head[4], stream, payload: payload.to_vec() });
        bytes = rest;
    }
    frames
}

/// A frame's bytes.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The head of a gRPC call; its messages follow.
pub fn call(stream: u32, path: &str) -> Vec<u8> {
    let headers = [("content-type", "application/grpc"), ("te", "trailers")];
    frame(HEADERS, END_HEADERS, stream, &header_block("POST", path, &headers))
}

/// A gRPC call with one empty message.
pub fn empty_call(stream: u32, path: &str) -> Vec<u8> {
    [call(stream, path), frame(DATA, END_STREAM, stream, &[0; 5])].concat()
}

/// A whole HTTP request without a body.
pub fn get(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &header_block("GET", path, &[]))
}

/// The frame that withdraws a call.
pub fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())
}

/// The frame that lets the server send so many more bytes.
pub fn window(stream: u32, more: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
}

/// Headers in their plainest form: nothing is compressed.
pub fn header_block(method: &str, path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let fields = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "localhost")];
    let mut block = Vec::new();
    for (name, value) in fields.iter().chain(headers) {
        block.push(0);
        for text in [name, value] {
            // Lengths below 127 take one byte.
            assert!(text.len() < 127);
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}
