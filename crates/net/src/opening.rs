//! What a connection without negotiation opens with. Source: RFC 9113, section 3.3.
//!
//! The upgrade by `Upgrade: h2c` is not offered, since RFC 9113 withdrew it: the header is ignored.

use std::io;

use bytes::BytesMut;
use tokio::time::timeout;

use super::connection::TransportStream;
use super::http2::PREFACE;
use super::phase::Shutdown;
use super::policy::ListenerPolicy;

/// What a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// HTTP/2, by negotiation or from its first byte.
    Http2,
    /// Most likely HTTP/1.
    Other,
    /// Nothing, for as long as a request head may take.
    TimedOut,
    /// Nothing any more: the connection broke, or the server ends.
    Ended,
}

impl Opening {
    /// Waits until it is known. The bytes read to decide are put back.
    pub async fn of(transport: &mut TransportStream, policy: &ListenerPolicy, shutdown: &Shutdown) -> Opening {
        if let Some(protocol) = transport.negotiated_protocol() {
            return if protocol == b"h2" { Opening::Http2 } else { Opening::Other };
        }
        tokio::select! {
            biased;
            opening = within_head_time(transport, policy) => opening,
            () = shutdown.clone().overdue(policy.timeouts.drain) => Opening::Ended,
        }
    }
}

/// What a client speaks, as far as it shows within the time-out of a request head.
async fn within_head_time(transport: &mut TransportStream, policy: &ListenerPolicy) -> Opening {
    let known = match policy.timeouts.head {
        Some(time) => timeout(time, has_preface(transport)).await,
        None => Ok(has_preface(transport).await),
    };
    match known {
        Ok(Ok(true)) => Opening::Http2,
        Ok(Ok(false)) => Opening::Other,
        Ok(Err(_)) => Opening::Ended,
        Err(_) => Opening::TimedOut,
    }
}

/// Whether the client sends HTTP/2's preface.
///
/// # Errors
///
/// The connection breaks.
async fn has_preface(transport: &mut TransportStream) -> io::Result<bool> {
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
