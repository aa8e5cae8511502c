//! A door: what is behind it, who may come in, and what a connection may take.

use std::sync::Arc;
use std::time::Duration;

use alipes_protocol::limits::GRPC_IDLE_PING_TIME;

use super::connection::{Line, Patience, Watch};
use super::http2::{Guard, PingRules};
use super::restricted::Restrictions;
use crate::service::Service;
use crate::spec::{ConnectionSpec, KeepaliveSpec};

/// Which door a connection came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// HTTP.
    Http,
    /// gRPC.
    Grpc,
    /// Metrics.
    Metrics,
}

impl Kind {
    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Http => "HTTP",
            Kind::Grpc => "gRPC",
            Kind::Metrics => "metrics",
        }
    }
}

/// A door of a server.
pub struct Door {
    /// Which.
    pub kind: Kind,
    /// What is behind it.
    pub service: Arc<Service>,
    /// What connections may take.
    pub limits: ConnectionSpec,
    /// How long connections are kept.
    pub patience: Patience,
    /// Requests that need a header.
    pub restrictions: Restrictions,
    /// Time between two pings of the server, and to wait for an answer.
    pub pings: Option<(Duration, Duration)>,
    /// How often a client may ping.
    pub ping_rules: Option<PingRules>,
}

impl Door {
    /// A door of a service, as its configuration says.
    pub fn new(kind: Kind, service: Arc<Service>) -> Door {
        let config = &service.config;
        let limits = config.connections.clone();
        let keepalive = (kind == Kind::Grpc).then_some(&config.keepalive);
        Door {
            kind,
            patience: patience(&limits, keepalive),
            restrictions: match kind {
                Kind::Http => Restrictions::http(&config.http_restricted),
                Kind::Grpc => Restrictions::grpc(&config.grpc_restricted),
                Kind::Metrics => Restrictions::default(),
            },
            pings: keepalive.and_then(pings),
            ping_rules: keepalive.map(|keepalive| PingRules {
                interval: Duration::from_millis(keepalive.min_recv_ping_interval_ms),
                strikes: keepalive.max_ping_strikes,
                without_calls: keepalive.permit_without_calls,
            }),
            limits,
            service,
        }
    }

    /// Watches a connection on which HTTP/1 is spoken.
    pub fn watch_http1(&self, line: &Line) -> Watch {
        Watch::http1(Arc::clone(line.pulse()), self.patience)
    }

    /// Watches a connection on which HTTP/2 is spoken, and the frames on it.
    pub fn watch_http2(&self, line: Line) -> (Line, Watch) {
        let pulse = Arc::clone(line.pulse());
        let guard = Guard::new(Arc::clone(&pulse), self.limits.http2_control_frames_per_s, self.ping_rules);
        (line.guarded(guard), Watch::http2(pulse, self.patience))
    }
}

fn patience(limits: &ConnectionSpec, keepalive: Option<&KeepaliveSpec>) -> Patience {
    Patience {
        head: seconds(limits.header_timeout_s),
        idle: seconds(limits.idle_timeout_s),
        stall: seconds(limits.stall_timeout_s),
        age: keepalive.and_then(|keepalive| milliseconds(keepalive.max_connection_age_ms)),
        grace: keepalive.and_then(|keepalive| milliseconds(keepalive.max_connection_age_grace_ms)),
    }
}

/// Pings cost each frame a look at the clock, so the longest time, which is gRPC's default, is left to TCP.
fn pings(keepalive: &KeepaliveSpec) -> Option<(Duration, Duration)> {
    let interval = milliseconds(keepalive.time_ms).filter(|interval| *interval < GRPC_IDLE_PING_TIME)?;
    Some((interval, Duration::from_millis(keepalive.timeout_ms)))
}

/// A time, or none where it is zero.
fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero())
}

fn milliseconds(milliseconds: u64) -> Option<Duration> {
    Some(Duration::from_millis(milliseconds)).filter(|time| !time.is_zero())
}
