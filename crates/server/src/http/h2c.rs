//! HTTP/2 without encryption on the HTTP door: by a client that knows it is there, and by `Upgrade: h2c`.
//!
//! Source: RFC 9113, section 3.3 (prior knowledge); RFC 7540, section 3.2 (the upgrade, which Knative still asks for).

use std::io;
use std::sync::Arc;

use alipes_protocol::limits::HTTP2_MAX_FIRST_SETTINGS_BYTES;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::{BufMut, Bytes, BytesMut};
use hyper::body::{Body, Incoming};
use hyper::header::{CONNECTION, HOST, HeaderName, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE};
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;

use super::reply::Reply;
use crate::net::connection::Line;
use crate::net::http2::PREFACE;

const SETTINGS: HeaderName = HeaderName::from_static("http2-settings");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Bytes of the head of a frame, and most that a frame carries before a client has said that it takes more.
const FRAME_HEAD_BYTES: usize = 9;
const FRAME_BYTES: usize = 1 << 14;

/// Whether a client speaks HTTP/2 from its first byte on; what was read to find out is put back.
///
/// # Errors
///
/// The connection breaks.
pub async fn has_prior_knowledge(line: &mut Line) -> io::Result<bool> {
    let mut read = BytesMut::with_capacity(PREFACE.len());
    // The first byte tells in all but the strangest cases.
    while read.len() < PREFACE.len() && PREFACE.starts_with(&read) {
        let before = read.len();
        line.read_ahead(&mut read, before + 1).await?;
        if read.len() == before {
            break;
        }
    }
    let known = read.starts_with(PREFACE);
    line.unread(read.freeze());
    Ok(known)
}

/// A connection that goes on with HTTP/2, left behind by the request that asked for it.
#[derive(Clone, Default)]
pub struct Upgrade(Arc<Mutex<Option<(OnUpgrade, Bytes)>>>);

impl Upgrade {
    /// Agrees to a request for HTTP/2; none where the request asks for something else, or for nothing.
    ///
    /// A request with a body is answered as it came, which a server may always do.
    pub fn accept(&self, request: &mut Request<Incoming>) -> Option<Response<Reply>> {
        let asked = request.headers().get(UPGRADE)?;
        let wanted = asked.as_bytes().split(|byte| *byte == b',').any(|token| token.trim_ascii() == b"h2c");
        let settings = request.headers().get(SETTINGS)?.as_bytes();
        let valid = URL_SAFE_NO_PAD.decode(settings).is_ok_and(|settings| settings.len() % 6 == 0);
        if !wanted || !valid || !request.body().is_end_stream() {
            return None;
        }
        let first_call = first_call(request);
        *self.0.lock() = Some((hyper::upgrade::on(request), first_call));
        let mut response = Response::new(Reply::default());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        response.headers_mut().insert(UPGRADE, HeaderValue::from_static("h2c"));
        Some(response)
    }

    /// The connection, once it is HTTP/1's no more, as a client of HTTP/2 would have begun it.
    ///
    /// The request that asked is put behind the client's settings, where it is the first call.
    pub async fn take(self) -> Option<Line> {
        let (upgrade, first_call) = self.0.lock().take()?;
        let parts = upgrade.await.ok()?.downcast::<TokioIo<Line>>().ok()?;
        let mut line = parts.io.into_inner();
        let mut read = BytesMut::from(parts.read_buf);
        // What hyper had read is not read twice; what it had not is.
        let settings_end = read_settings(&mut line, &mut read).await?;
        let rest = read.split_off(settings_end);
        read.extend_from_slice(&first_call);
        read.extend_from_slice(&rest);
        line.unread(read.freeze());
        Some(line)
    }
}

/// Reads the client's preface and settings; where they end.
async fn read_settings(line: &mut Line, read: &mut BytesMut) -> Option<usize> {
    let head_end = PREFACE.len() + FRAME_HEAD_BYTES;
    line.read_ahead(read, head_end).await.ok()?;
    let head = read.get(PREFACE.len()..head_end).filter(|_| read.starts_with(PREFACE))?;
    let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
    let is_settings = head[3] == 4;
    if !is_settings || length > HTTP2_MAX_FIRST_SETTINGS_BYTES {
        return None;
    }
    line.read_ahead(read, head_end + length).await.ok()?;
    (read.len() >= head_end + length).then_some(head_end + length)
}

/// The frames of a call without a body, as the first on its connection.
fn first_call(request: &Request<Incoming>) -> Bytes {
    let headers = request.headers();
    let mut block = BytesMut::new();
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    literal(&mut block, b":method", request.method().as_str().as_bytes());
    literal(&mut block, b":scheme", b"http");
    literal(&mut block, b":path", path.as_bytes());
    if let Some(host) = headers.get(HOST) {
        literal(&mut block, b":authority", host.as_bytes());
    }
    for (name, value) in headers {
        let hop = [CONNECTION, UPGRADE, SETTINGS, HOST, KEEP_ALIVE, PROXY_CONNECTION, TRANSFER_ENCODING, TE];
        if !hop.contains(name) {
            literal(&mut block, name.as_str().as_bytes(), value.as_bytes());
        }
    }
    frames(&block)
}

/// A header block in as many frames as it needs.
fn frames(block: &[u8]) -> Bytes {
    let (headers, continuation, end_stream, end_headers) = (1u8, 9u8, 1u8, 4u8);
    let mut bytes = BytesMut::with_capacity(block.len() + FRAME_HEAD_BYTES);
    let pieces = block.len().div_ceil(FRAME_BYTES);
    for (number, piece) in block.chunks(FRAME_BYTES).enumerate() {
        let (kind, flags) = if number == 0 { (headers, end_stream) } else { (continuation, 0) };
        let flags = if number + 1 == pieces { flags | end_headers } else { flags };
        bytes.put_uint(piece.len() as u64, 3);
        bytes.put_slice(&[kind, flags, 0, 0, 0, 1]);
        bytes.put_slice(piece);
    }
    bytes.freeze()
}

/// A header in its plainest form: not indexed, not compressed. Source: RFC 7541, section 6.2.2.
fn literal(block: &mut BytesMut, name: &[u8], value: &[u8]) {
    block.put_u8(0);
    for text in [name, value] {
        length(block, text.len());
        block.put_slice(text);
    }
}

/// A length with seven bits in its first byte. Source: RFC 7541, section 5.1.
fn length(block: &mut BytesMut, length: usize) {
    if length < 127 {
        return block.put_u8(length as u8);
    }
    block.put_u8(127);
    let mut rest = length - 127;
    while rest >= 128 {
        block.put_u8(rest as u8 | 128);
        rest >>= 7;
    }
    block.put_u8(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_as_the_specification_shows() {
        let written = |number| {
            let mut block = BytesMut::new();
            length(&mut block, number);
            block.to_vec()
        };
        assert_eq!(written(10), [10]);
        assert_eq!(written(127), [127, 0]);
        // 1337 with five bits is 31, 154, 10; with seven, 127 and 1210 in groups of seven bits.
        assert_eq!(written(1337), [127, 186, 9]);
    }

    #[test]
    fn a_long_block_is_cut_into_frames() {
        let bytes = frames(&vec![1; FRAME_BYTES + 5]);
        assert_eq!(&bytes[..9], [0, 64, 0, 1, 1, 0, 0, 0, 1]);
        assert_eq!(&bytes[9 + FRAME_BYTES..18 + FRAME_BYTES], [0, 0, 5, 9, 4, 0, 0, 0, 1]);
    }
}
