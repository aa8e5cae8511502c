//! HTTP/2 without encryption, from a client that knows that it is offered. Source: RFC 9113, section 3.3.
//!
//! The upgrade by `Upgrade: h2c` is not offered, since RFC 9113 withdrew it: the header is ignored.

use std::io;

use alipes_net::connection::TransportStream;
use alipes_net::http2::PREFACE;
use bytes::BytesMut;

/// Whether the client speaks HTTP/2 from its first byte. The bytes read to decide are put back.
///
/// # Errors
///
/// The connection breaks.
pub async fn has_prior_knowledge(transport: &mut TransportStream) -> io::Result<bool> {
    let mut read = BytesMut::with_capacity(PREFACE.len());
    // The first byte decides in nearly all cases.
    while read.len() < PREFACE.len() && PREFACE.starts_with(&read) {
        let before = read.len();
        transport.read_ahead(&mut read, before + 1).await?;
        if read.len() == before {
            break;
        }
    }
    let known = read.starts_with(PREFACE);
    transport.put_back(read.freeze());
    Ok(known)
}
