//! What a listener admits, and what its connections may use: limits, time-outs, restrictions, pings.

use std::sync::Arc;
use std::time::Duration;

use alipes_protocol::limits::{GRPC_IDLE_PING_TIME, METRICS_IDLE_TIME};
use alipes_spec::{ConnectionSpec, KeepaliveSpec, ServerConfig};

use super::api_keys::ApiKeys;
use super::connection::{ConnectionTimeouts, TransportStream, Watchdog};
use super::http2::{FrameGuard, PingRules};
use super::phase::Phase;
use super::restricted::Restrictions;

/// What a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerKind {
    /// HTTP.
    Http,
    /// gRPC.
    Grpc,
    /// Metrics.
    Metrics,
}

impl ListenerKind {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            ListenerKind::Http => "HTTP",
            ListenerKind::Grpc => "gRPC",
            ListenerKind::Metrics => "metrics",
        }
    }

    /// The phase of the network in which the listener closes. Metrics report on a drain while it lasts.
    pub fn closes_in(self) -> Phase {
        match self {
            ListenerKind::Http | ListenerKind::Grpc => Phase::Closing,
            ListenerKind::Metrics => Phase::Cut,
        }
    }
}

/// The rules of one listener.
pub struct ListenerPolicy {
    /// What the listener serves.
    pub kind: ListenerKind,
    /// Limits of a connection.
    pub limits: ConnectionSpec,
    /// Time-outs of a connection.
    pub timeouts: ConnectionTimeouts,
    /// Keys that requests need, on all listeners.
    pub api_keys: Arc<ApiKeys>,
    /// Requests that need a header.
    pub restrictions: Restrictions,
    /// Interval between two pings of the server, and time-out of their acknowledgement.
    pub pings: Option<(Duration, Duration)>,
    /// How often a client may ping.
    pub ping_rules: Option<PingRules>,
}

impl ListenerPolicy {
    /// The policy of a listener, as the server's configuration says; its keys change while it serves.
    pub fn new(kind: ListenerKind, config: &ServerConfig, api_keys: &Arc<ApiKeys>) -> ListenerPolicy {
        let limits = config.connections.clone();
        let keepalive = (kind == ListenerKind::Grpc).then_some(&config.keepalive);
        ListenerPolicy {
            kind,
            api_keys: Arc::clone(api_keys),
            timeouts: timeouts(kind, &limits, keepalive),
            restrictions: match kind {
                ListenerKind::Http => Restrictions::http(&config.http_restricted),
                ListenerKind::Grpc => Restrictions::grpc(&config.grpc_restricted),
                ListenerKind::Metrics => Restrictions::default(),
            },
            pings: keepalive.and_then(pings),
            ping_rules: keepalive.map(|keepalive| PingRules {
                interval: Duration::from_millis(keepalive.min_recv_ping_interval_ms),
                strikes: keepalive.max_ping_strikes,
                without_calls: keepalive.permit_without_calls,
            }),
            limits,
        }
    }

    /// The watchdog of an HTTP/1 connection.
    pub fn watch_http1(&self, transport: &TransportStream) -> Watchdog {
        Watchdog::http1(Arc::clone(transport.activity()), self.timeouts)
    }

    /// The watchdog of an HTTP/2 connection, whose frames are checked from here on.
    pub fn watch_http2(&self, transport: TransportStream) -> (TransportStream, Watchdog) {
        let activity = Arc::clone(transport.activity());
        let frames_per_s = self.limits.http2_control_frames_per_s;
        let guard = FrameGuard::new(Arc::clone(&activity), frames_per_s, self.ping_rules, transport.origin().cloned());
        (transport.with_frame_guard(guard), Watchdog::http2(activity, self.timeouts))
    }

    /// Interval between two checks of the certificate files; none where they are not checked.
    pub fn tls_reload_interval(&self) -> Option<Duration> {
        seconds(self.limits.tls_reload_s)
    }
}

fn timeouts(kind: ListenerKind, limits: &ConnectionSpec, keepalive: Option<&KeepaliveSpec>) -> ConnectionTimeouts {
    let idle = seconds(limits.idle_timeout_s);
    let grace = Duration::try_from_secs_f64(limits.exit_grace_s).unwrap_or_default();
    let (idle, drain) = match kind {
        // Few connections are enough for those who read metrics, and metrics report on a drain until its end.
        ListenerKind::Metrics => (Some(idle.map_or(METRICS_IDLE_TIME, |idle| idle.min(METRICS_IDLE_TIME))), None),
        ListenerKind::Http | ListenerKind::Grpc => (idle, Some(grace)),
    };
    ConnectionTimeouts {
        head: seconds(limits.header_timeout_s),
        idle,
        stall: seconds(limits.stall_timeout_s),
        age: keepalive.and_then(|keepalive| milliseconds(keepalive.max_connection_age_ms)),
        grace: keepalive.and_then(|keepalive| milliseconds(keepalive.max_connection_age_grace_ms)),
        drain,
    }
}

/// Pings cost a clock read per frame, so the longest interval, which is gRPC's default, is left to TCP.
fn pings(keepalive: &KeepaliveSpec) -> Option<(Duration, Duration)> {
    let interval = milliseconds(keepalive.time_ms).filter(|interval| *interval < GRPC_IDLE_PING_TIME)?;
    Some((interval, Duration::from_millis(keepalive.timeout_ms)))
}

/// A duration; none where it is zero.
fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero())
}

fn milliseconds(milliseconds: u64) -> Option<Duration> {
    Some(Duration::from_millis(milliseconds)).filter(|time| !time.is_zero())
}
