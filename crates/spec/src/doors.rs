//! What the control plane says about doors: where they are, who may come in, and what connections may take.

use alipes_protocol::limits;
use serde::Deserialize;

/// An endpoint of the server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Whether the endpoint is offered at all.
    pub enabled: bool,
    /// Host name or address to bind, or `unix:` and a path.
    pub address: String,
    /// Port to bind; 0 asks the system for one.
    pub port: u16,
    /// Whether other processes may listen on the same port.
    #[serde(default)]
    pub reuse_port: bool,
    /// How connections are encrypted; none leaves them plain.
    #[serde(default)]
    pub tls: Option<TlsSpec>,
}

/// The files behind encrypted connections, as PEM.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsSpec {
    /// The server's certificate, and those between it and a root.
    pub certificate: String,
    /// Its key.
    pub key: String,
    /// Roots that a client's certificate has to lead to; none asks clients for no certificate.
    pub client_roots: Option<String>,
}

/// Some requests that need a header.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestrictionSpec {
    /// Names of the groups.
    pub groups: Vec<String>,
    /// The header's name.
    pub header: String,
    /// What it has to hold.
    pub value: String,
}

/// What connections may take. Times and rates of zero set no limit.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionSpec {
    /// Most connections at a time, but for those of the metrics endpoint; 0 takes what descriptors allow.
    pub max_connections: usize,
    /// Largest head of a request in bytes.
    pub max_header_bytes: usize,
    /// Most headers of a request.
    pub max_header_count: usize,
    /// Longest time until a connection, or the rest of a head, has come, in seconds.
    pub header_timeout_s: f64,
    /// Longest time without any request, in seconds.
    pub idle_timeout_s: f64,
    /// Longest time in which hardly anything of a body comes, or nothing of an answer is taken, in seconds.
    pub stall_timeout_s: f64,
    /// Frames of HTTP/2 a second that carry nothing.
    pub http2_control_frames_per_s: u32,
    /// Seconds between two looks at the files of certificates.
    pub tls_reload_s: f64,
}

impl Default for ConnectionSpec {
    fn default() -> ConnectionSpec {
        ConnectionSpec {
            max_connections: 0,
            max_header_bytes: limits::HTTP_MAX_HEADER_BYTES,
            max_header_count: limits::HTTP_MAX_HEADERS,
            header_timeout_s: limits::HEADER_TIME.as_secs_f64(),
            idle_timeout_s: limits::IDLE_TIME.as_secs_f64(),
            stall_timeout_s: limits::STALL_TIME.as_secs_f64(),
            http2_control_frames_per_s: limits::HTTP2_CONTROL_FRAMES_PER_SECOND,
            tls_reload_s: 10.0,
        }
    }
}

/// How gRPC connections are kept; the words are gRPC's. Times of zero set no limit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeepaliveSpec {
    /// Milliseconds between two pings of the server.
    pub time_ms: u64,
    /// Milliseconds to wait for the answer to one.
    pub timeout_ms: u64,
    /// Whether clients without calls may ping as often as those with.
    pub permit_without_calls: bool,
    /// Milliseconds that have to pass between two pings of a client to which nothing is sent.
    pub min_recv_ping_interval_ms: u64,
    /// Pings that may come earlier; 0 takes any number.
    pub max_ping_strikes: u32,
    /// Milliseconds until a connection is asked to go.
    pub max_connection_age_ms: u64,
    /// Milliseconds after which one that was asked is closed.
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
