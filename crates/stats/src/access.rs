//! What a verbose log says of each request that a listener receives: one line, once the request is over.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Instant;

use alipes_protocol::limits::LOG_FIELD_BYTES;
use http::{HeaderMap, HeaderName};
use parking_lot::Mutex;

use crate::events::{Event, EventQueue};

/// No response has begun.
const NO_STATUS: u16 = u16::MAX;

/// What the log says of an HTTP request whose client has gone. No status of HTTP means it, and nobody is sent one.
const CLIENT_GONE: u16 = 499;

/// CANCELLED and UNKNOWN, of gRPC.
const CANCELLED: u16 = 1;
const UNKNOWN: u16 = 2;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// What a listener speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// HTTP.
    Http,
    /// gRPC.
    Grpc,
}

/// The record of a request, made where the log is verbose. The line is written when the record is dropped, which its
/// call holds until the response is sent.
pub struct AccessRecord {
    events: Arc<EventQueue>,
    spoken: Spoken,
    method: String,
    path: String,
    peer: String,
    arrived: Instant,
    status: AtomicU16,
    subject: Mutex<Named>,
}

/// What a request names.
#[derive(Default)]
struct Named {
    model: String,
    request_id: String,
}

impl AccessRecord {
    /// Begins the record of a request whose head has arrived; no address stands for a Unix socket.
    pub fn begin(
        events: &Arc<EventQueue>,
        spoken: Spoken,
        method: &str,
        path: &str,
        peer: Option<IpAddr>,
    ) -> AccessRecord {
        AccessRecord {
            events: Arc::clone(events),
            spoken,
            method: bounded(method),
            path: bounded(path),
            peer: peer.map_or_else(|| "unix".to_owned(), |address| address.to_canonical().to_string()),
            arrived: alipes_clock::now(),
            status: AtomicU16::new(NO_STATUS),
            subject: Mutex::default(),
        }
    }

    /// The request names a model and has an id; what is empty changes nothing.
    pub fn names(&self, model: &str, request_id: &str) {
        let mut subject = self.subject.lock();
        if !model.is_empty() {
            subject.model = bounded(model);
        }
        if !request_id.is_empty() {
            subject.request_id = bounded(request_id);
        }
    }

    /// The response over HTTP begins with this status.
    pub fn answered(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    /// The head or the trailers of a response over gRPC, which may hold the status.
    pub fn ended(&self, headers: &HeaderMap) {
        let status = headers.get(GRPC_STATUS).and_then(|value| value.to_str().ok()?.parse().ok());
        if let Some(status) = status {
            self.answered(status);
        }
    }

    /// The response is none of gRPC's.
    pub fn not_understood(&self) {
        self.answered(UNKNOWN);
    }
}

impl Drop for AccessRecord {
    fn drop(&mut self) {
        let Named { model, request_id } = std::mem::take(self.subject.get_mut());
        let (protocol, gone) = match self.spoken {
            Spoken::Http => ("http", CLIENT_GONE),
            Spoken::Grpc => ("grpc", CANCELLED),
        };
        let status = match *self.status.get_mut() {
            NO_STATUS => gone,
            status => status,
        };
        let spent = alipes_clock::elapsed(self.arrived);
        self.events.push(Event::Access {
            protocol,
            method: std::mem::take(&mut self.method),
            path: std::mem::take(&mut self.path),
            model,
            request_id,
            status,
            micros: u64::try_from(spent.as_micros()).unwrap_or(u64::MAX),
            peer: std::mem::take(&mut self.peer),
        });
    }
}

/// The text, cut between two characters where it is long.
fn bounded(text: &str) -> String {
    if text.len() <= LOG_FIELD_BYTES {
        return text.to_owned();
    }
    let start =
        text.char_indices().map(|(at, _)| at).take_while(|at| *at <= LOG_FIELD_BYTES).last().unwrap_or_default();
    format!("{}...", &text[..start])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use alipes_clock::Held;
    use http::HeaderValue;

    use super::*;

    fn written(spoken: Spoken, path: &str, does: impl FnOnce(&AccessRecord)) -> Event {
        let events = Arc::<EventQueue>::default();
        let peer = Some("::ffff:203.0.113.9".parse().unwrap());
        does(&AccessRecord::begin(&events, spoken, "POST", path, peer));
        events.next(alipes_clock::now()).unwrap()
    }

    #[test]
    fn a_request_is_one_event_once_it_is_over() {
        let clock = Held::new();
        let _entered = clock.enter();
        let event = written(Spoken::Http, "/v2/models/m/infer", |record| {
            record.names("m", "from the header");
            record.names("", "7");
            record.answered(404);
            clock.advance(Duration::from_micros(1500));
        });
        let expected = Event::Access {
            protocol: "http",
            method: "POST".to_owned(),
            path: "/v2/models/m/infer".to_owned(),
            model: "m".to_owned(),
            request_id: "7".to_owned(),
            status: 404,
            micros: 1500,
            peer: "203.0.113.9".to_owned(),
        };
        assert_eq!(event, expected);
    }

    #[test]
    fn grpc_takes_its_status_from_head_or_trailers() {
        let status = |does: fn(&AccessRecord)| match written(Spoken::Grpc, "/a/B", does) {
            Event::Access { status, .. } => status,
            other => panic!("{other:?}"),
        };
        assert_eq!(status(|_| {}), CANCELLED);
        assert_eq!(status(AccessRecord::not_understood), UNKNOWN);
        let head_and_trailers = status(|record| {
            record.ended(&HeaderMap::new());
            record.ended(&HeaderMap::from_iter([(GRPC_STATUS, HeaderValue::from_static("5"))]));
        });
        assert_eq!(head_and_trailers, 5);
    }

    #[test]
    fn a_client_that_has_gone_and_a_long_path_are_recorded() {
        let path = format!("/{}", "ž".repeat(LOG_FIELD_BYTES));
        let Event::Access { status, path, .. } = written(Spoken::Http, &path, |_| {}) else { panic!() };
        assert_eq!(status, CLIENT_GONE);
        assert!(path.ends_with("ž...") && path.len() <= LOG_FIELD_BYTES + 3, "{path}");
    }
}
