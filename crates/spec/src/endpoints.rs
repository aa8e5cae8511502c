//! Endpoints: addresses, encryption, restricted requests, and limits on connections.

use std::fmt;

use alipes_protocol::limits;
use serde::Deserialize;

use crate::address_range::AddressRange;

/// An endpoint of the server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Whether the server offers it.
    pub enabled: bool,
    /// Host name or address to bind, or `unix:` and a path.
    pub address: String,
    /// Port to bind; 0 asks the system for one.
    pub port: u16,
    /// Whether other processes may listen on the same port.
    #[serde(default)]
    pub reuse_port: bool,
    /// Encryption of its connections; none for plain text.
    #[serde(default)]
    pub tls: Option<TlsSpec>,
}

/// PEM files of an encrypted endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsSpec {
    /// The server's certificate, followed by intermediate certificates.
    pub certificate: String,
    /// The key of the certificate.
    pub key: String,
    /// Roots that client certificates must lead to; none asks clients for no certificate.
    pub client_roots: Option<String>,
}

/// Groups of requests that need a header.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestrictionSpec {
    /// Names of the groups.
    pub groups: Vec<String>,
    /// Name of the header.
    pub header: String,
    /// The value that it must have.
    pub value: String,
}

/// Keys that clients show on every listener.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKeySpec {
    /// The keys.
    pub keys: Vec<String>,
    /// Names of the groups whose requests need none.
    pub open: Vec<String>,
}

impl fmt::Debug for ApiKeySpec {
    /// Without the keys: who reads a log gets no access.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ApiKeySpec").field("keys", &self.keys.len()).field("open", &self.open).finish()
    }
}

/// Limits on connections. A time or rate of 0 means no limit.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionSpec {
    /// Most connections at a time, without those of the metrics endpoint; 0 derives the number from memory and from the
    /// limit on descriptors.
    pub max_connections: usize,
    /// Memory for connections in bytes, where their number is derived.
    pub memory_bytes: u64,
    /// Largest head of a request in bytes.
    pub max_header_bytes: usize,
    /// Most headers of a request.
    pub max_header_count: usize,
    /// Longest time until the first byte of a connection, or the rest of a head, arrives, in seconds.
    pub header_timeout_s: f64,
    /// Longest time without a request, in seconds.
    pub idle_timeout_s: f64,
    /// Longest time with next to no progress of a request body, or with none of a response, in seconds.
    pub stall_timeout_s: f64,
    /// Time from the begin of a drain until a connection without a request is closed, in seconds.
    pub exit_grace_s: f64,
    /// Most frames of HTTP/2 that bring nothing, per second.
    pub http2_control_frames_per_s: u32,
    /// Addresses that are never put on probation for a flood.
    pub trusted_proxies: Vec<AddressRange>,
    /// Interval between two checks of the certificate files, in seconds.
    pub tls_reload_s: f64,
}

impl Default for ConnectionSpec {
    fn default() -> ConnectionSpec {
        ConnectionSpec {
            max_connections: 0,
            memory_bytes: u64::MAX,
            max_header_bytes: limits::HTTP_MAX_HEADER_BYTES,
            max_header_count: limits::HTTP_MAX_HEADERS,
            header_timeout_s: limits::HEADER_TIME.as_secs_f64(),
            idle_timeout_s: limits::IDLE_TIME.as_secs_f64(),
            stall_timeout_s: limits::STALL_TIME.as_secs_f64(),
            exit_grace_s: limits::EXIT_GRACE.as_secs_f64(),
            http2_control_frames_per_s: limits::HTTP2_CONTROL_FRAMES_PER_SECOND,
            trusted_proxies: Vec::new(),
            tls_reload_s: 10.0,
        }
    }
}

/// Keep-alive of gRPC connections, in gRPC's own words. A time of 0 means no limit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeepaliveSpec {
    /// Interval between two pings of the server, in milliseconds.
    pub time_ms: u64,
    /// Longest time until the answer to a ping, in milliseconds.
    pub timeout_ms: u64,
    /// Whether clients without calls may ping as often as those with.
    pub permit_without_calls: bool,
    /// Shortest interval between two pings of a client that receives nothing, in milliseconds.
    pub min_recv_ping_interval_ms: u64,
    /// Pings that may come earlier; 0 for any number.
    pub max_ping_strikes: u32,
    /// Age at which a connection gets GOAWAY, in milliseconds.
    pub max_connection_age_ms: u64,
    /// Time from GOAWAY until the connection is closed, in milliseconds.
    pub max_connection_age_grace_ms: u64,
}

impl Default for KeepaliveSpec {
    fn default() -> KeepaliveSpec {
        KeepaliveSpec {
            time_ms: 7_200_000,
            timeout_ms: 20_000,
            permit_without_calls: false,
            min_recv_ping_interval_ms: 300_000,
            max_ping_strikes: 2,
            max_connection_age_ms: 0,
            max_connection_age_grace_ms: 0,
        }
    }
}
