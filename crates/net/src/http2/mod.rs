//! HTTP/2 of the HTTP and the gRPC listener: window sizes, limits, and a guard against floods of frames.

mod call_executor;
mod debtors;
mod floods;
mod frame_account;
mod frames;
#[cfg(test)]
mod fuzz;
mod open_calls;
mod pings;
mod small_data;

use std::sync::Arc;

use alipes_protocol::limits::{GRPC_MAX_CONCURRENT_CALLS, HTTP2_MAX_RESETS_AT_ONCE};
use hyper::server::conn::http2;
pub use hyper::server::conn::http2::Connection;
use hyper_util::rt::TokioTimer;

use self::call_executor::CallExecutor;
pub use self::floods::FrameGuard;
pub use self::frame_account::Flood;
pub use self::pings::PingRules;
use super::connection::Activity;
use super::policy::ListenerPolicy;

/// The first bytes of an HTTP/2 client.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes a client may send on one call before they are read: more than one picture of 3x224x224 FP32.
const CALL_WINDOW_BYTES: u32 = 4 << 20;

/// Bytes a client may send on one connection before they are read.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// Largest piece that a client may send at once; smaller messages come in one piece and are not copied at all.
///
/// CPU of the server for one 602 KB message of the Python client (two shared cores, 1,500 calls a run, three runs):
/// 193 µs with pieces of 16 KiB, 165 of 64 KiB, 135 of 128 KiB, 160 of 256 KiB, 220 of 1 MiB, whose buffers are
/// allocated anew for each message.
const FRAME_BYTES: u32 = 128 << 10;

/// The builder of HTTP/2 connections under a listener's policy.
pub fn builder(policy: &ListenerPolicy, activity: &Arc<Activity>) -> http2::Builder<CallExecutor> {
    let mut builder = http2::Builder::new(CallExecutor::new(Arc::clone(activity), policy.timeouts.stall));
    builder
        .adaptive_window(false)
        .initial_stream_window_size(CALL_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES)
        .max_concurrent_streams(GRPC_MAX_CONCURRENT_CALLS)
        .max_pending_accept_reset_streams(HTTP2_MAX_RESETS_AT_ONCE)
        // The library counts the resets of a connection's whole life, and what a proxy still sends of a call that was
        // answered early among them. The guard counts them per time, by their causes.
        .max_local_error_reset_streams(None)
        .max_header_list_size(u32::try_from(policy.limits.max_header_bytes).unwrap_or(u32::MAX))
        .auto_date_header(false);
    if let Some((interval, timeout)) = policy.pings {
        builder.timer(TokioTimer::new()).keep_alive_interval(interval).keep_alive_timeout(timeout);
    }
    builder
}
