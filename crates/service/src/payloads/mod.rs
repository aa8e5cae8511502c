//! The payload log: copies of requests and of their responses, which wait for the control plane to send them on.

mod payload;
mod queue;

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use alipes_protocol::{InferError, InferRequest, Parameter, Tensor, call};
use alipes_runtime::model::ModelVersion;
use alipes_spec::PayloadLogSpec;
use alipes_stats::metrics::PayloadRow;
use http::{HeaderMap, HeaderValue};
use payload::{Content, Subject};
pub use payload::{Payload, Side};
use queue::PayloadQueue;

use super::uuids::Uuids;

/// Which requests are logged, and what waits to be sent.
pub struct Payloads {
    spec: Option<PayloadLogSpec>,
    redacted: BTreeSet<String>,
    random: RandomState,
    exchanges: Uuids,
    drawn: AtomicU64,
    queue: Arc<PayloadQueue>,
    sent: AtomicU64,
    failed: AtomicU64,
}

/// A request that is logged, until it is answered: its responses, each of which is logged by itself.
pub struct Exchange {
    subject: Arc<Subject>,
    queue: Arc<PayloadQueue>,
}

impl Exchange {
    /// Logs a response.
    pub(super) fn end(&self, outcome: Result<Response<'_>, &InferError>) {
        match outcome {
            Ok((outputs, parameters)) => self.push(bytes(outputs), || Content::of(outputs, parameters)),
            Err(error) => self.fail(error),
        }
    }

    /// Logs a response whose body is a JSON document.
    pub fn end_body(&self, outcome: Result<&[u8], &InferError>) {
        match outcome {
            Ok(body) => self.push(body.len() as u64, || Content::document(body)),
            Err(error) => self.fail(error),
        }
    }

    fn fail(&self, error: &InferError) {
        self.push(error.message.len() as u64, || Content::failure(error));
    }

    fn push(&self, bytes: u64, content: impl FnOnce() -> Content) {
        self.queue.push(bytes, || Payload::new(Side::Response, &self.subject, content()));
    }
}

/// The outputs of a response, and its parameters.
type Response<'a> = (&'a [Tensor], &'a [(String, Parameter)]);

impl Payloads {
    /// Nothing waits.
    pub(super) fn new(spec: Option<&PayloadLogSpec>) -> Payloads {
        Payloads {
            redacted: spec.map(|spec| spec.redacted.iter().cloned().collect()).unwrap_or_default(),
            queue: Arc::new(PayloadQueue::new(spec.map_or(0, |spec| spec.max_bytes))),
            spec: spec.cloned(),
            random: RandomState::new(),
            exchanges: Uuids::default(),
            drawn: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    /// The headers to log with a request that is drawn for the log; none for all others.
    pub fn draw(&self, headers: &HeaderMap) -> Option<Arc<[(String, String)]>> {
        let spec = self.spec.as_ref()?;
        let number = self.drawn.fetch_add(1, Ordering::Relaxed);
        if self.random.hash_one(number) as f64 >= spec.sample * 2f64.powi(64) {
            return None;
        }
        let text = |name: &String| {
            // Bytes beyond ASCII are read as Latin-1, which loses none.
            let latin = |value: &HeaderValue| value.as_bytes().iter().map(|&byte| char::from(byte)).collect::<String>();
            let values: Vec<_> = headers.get_all(name).iter().map(latin).collect();
            (!values.is_empty()).then(|| (name.clone(), values.join(", ")))
        };
        Some(spec.headers.iter().filter_map(text).collect())
    }

    /// Whether anything is logged: what is to be drawn later must be there then.
    pub fn is_on(&self) -> bool {
        self.spec.is_some()
    }

    /// Logs a request that was drawn; none for any other.
    pub(super) fn begin(&self, model: &ModelVersion, request: &mut InferRequest) -> Option<Exchange> {
        let (spec, headers) = (self.spec.as_ref()?, request.logged.take()?);
        let parameter = |wanted: &str| {
            let mut all = request.parameters.iter().filter(|_| request.call);
            all.find_map(|(name, value)| match value {
                Parameter::String(text) if name == wanted => Some(text.as_str()),
                _ => None,
            })
        };
        let subject = Arc::new(Subject {
            path: parameter(call::PATH).unwrap_or_default().to_owned(),
            // A message of gRPC.
            is_message: parameter(call::CONTENT_TYPE) == Some(call::MESSAGE),
            ..self.subject(model, &request.id, headers)
        });
        if spec.requests {
            self.push(Side::Request, &subject, bytes(&request.inputs), || {
                Content::of(&request.inputs, &request.parameters)
            });
        }
        self.exchange(spec, subject)
    }

    /// Logs a request of the V1 protocol that was drawn, with its body as it came.
    pub fn begin_body(&self, model: &ModelVersion, id: &str, headers: &HeaderMap, body: &[u8]) -> Option<Exchange> {
        let (spec, headers) = (self.spec.as_ref()?, self.draw(headers)?);
        let subject = Arc::new(self.subject(model, id, headers));
        if spec.requests {
            self.push(Side::Request, &subject, body.len() as u64, || Content::document(body));
        }
        self.exchange(spec, subject)
    }

    fn exchange(&self, spec: &PayloadLogSpec, subject: Arc<Subject>) -> Option<Exchange> {
        spec.responses.then(|| Exchange { subject, queue: Arc::clone(&self.queue) })
    }

    fn subject(&self, model: &ModelVersion, id: &str, headers: Arc<[(String, String)]>) -> Subject {
        let (exchange, version, request_id) = (self.exchanges.next(), model.spec.version, id.to_owned());
        let (model, path) = (Arc::clone(&model.name), String::new());
        Subject { exchange, model, version, request_id, headers, path, is_message: false }
    }

    fn push(&self, side: Side, subject: &Arc<Subject>, bytes: u64, content: impl FnOnce() -> Content) {
        self.queue.push(bytes, || Payload::new(side, subject, content()));
    }

    /// The next payload as `Payload::encode` gives it; none when the deadline passes, or when the log is closed and all
    /// of it was taken.
    pub fn next(&self, deadline: Instant) -> Option<(String, bytes::Bytes)> {
        self.queue.next(deadline).map(|payload| payload.encode(&self.redacted))
    }

    /// Counts payloads that were sent, and those that could not be.
    pub fn note(&self, sent: u64, failed: u64) {
        self.sent.fetch_add(sent, Ordering::Relaxed);
        self.failed.fetch_add(failed, Ordering::Relaxed);
    }

    /// Takes no more.
    pub fn close(&self) {
        self.queue.close();
    }

    /// What the metrics show; none where nothing is logged.
    pub(super) fn row(&self) -> Option<PayloadRow> {
        self.spec.as_ref()?;
        let (dropped, waiting_bytes) = self.queue.counts();
        let (sent, failed) = (self.sent.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed));
        Some(PayloadRow { sent, failed, dropped, waiting_bytes })
    }
}

fn bytes(tensors: &[Tensor]) -> u64 {
    tensors.iter().map(|tensor| tensor.data.len() as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(sample: f64) -> PayloadLogSpec {
        let names = |text: &str| text.split(' ').map(str::to_owned).collect();
        PayloadLogSpec {
            requests: true,
            responses: true,
            sample,
            headers: names("x-a authorization"),
            redacted: names("authorization"),
            max_bytes: 2048,
        }
    }

    fn subject() -> Arc<Subject> {
        let headers: Arc<[_]> =
            [("x-a".to_owned(), "1, 2".to_owned()), ("authorization".to_owned(), "Basic x".to_owned())].into();
        Arc::new(Subject {
            exchange: "e".into(),
            model: "m".into(),
            version: 1,
            request_id: "7".into(),
            headers,
            path: "/v1/models/m:explain".into(),
            is_message: false,
        })
    }

    #[test]
    fn a_share_of_requests_is_drawn() {
        let headers = HeaderMap::new();
        let drawn = |sample: f64| {
            let payloads = Payloads::new(Some(&spec(sample)));
            (0..10_000).filter(|_| payloads.draw(&headers).is_some()).count()
        };
        assert_eq!((drawn(0.0), drawn(1.0)), (0, 10_000));
        let some = drawn(0.1);
        assert!((800..1200).contains(&some), "{some}");
        assert!(Payloads::new(None).draw(&headers).is_none());
    }

    #[test]
    fn named_headers_are_logged_alone() {
        let headers: HeaderMap = [("x-a", "1"), ("x-a", "2"), ("cookie", "c")]
            .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)))
            .into_iter()
            .collect();
        let drawn = Payloads::new(Some(&spec(1.0))).draw(&headers).unwrap();
        assert_eq!(&*drawn, &[("x-a".to_owned(), "1, 2".to_owned())]);
    }

    #[test]
    fn what_is_redacted_is_not_in_the_head() {
        let payloads = Payloads::new(Some(&spec(1.0)));
        payloads.push(Side::Response, &subject(), 0, || Content::failure(&InferError::invalid("no")));
        let (head, body) = payloads.next(alipes_clock::now()).unwrap();
        let head: serde_json::Value = serde_json::from_str(&head).unwrap();
        assert_eq!(head["headers"], serde_json::json!({"x-a": "1, 2", "authorization": "[redacted]"}));
        assert_eq!((head["side"].as_str(), head["status"].as_u64()), (Some("response"), Some(400)));
        assert_eq!(head["path"], "/v1/models/m:explain");
        assert_eq!(body, r#"{"error":"no"}"#);
    }

    #[test]
    fn what_has_no_room_is_dropped_and_counted() {
        let payloads = Payloads::new(Some(&spec(1.0)));
        let push = |bytes| {
            payloads.push(Side::Request, &subject(), bytes, || Content::failure(&InferError::invalid("")));
        };
        [1000, 1000, u64::MAX, 0].into_iter().for_each(push);
        let row = payloads.row().unwrap();
        assert_eq!((row.dropped, row.waiting_bytes), (2, 1000 + 2 * 512));
        assert_eq!(std::iter::from_fn(|| payloads.next(alipes_clock::now())).count(), 2);
        payloads.close();
        push(0);
        assert_eq!(payloads.row().unwrap().dropped, 3);
        assert!(payloads.next(alipes_clock::now() + std::time::Duration::from_secs(3600)).is_none());
    }
}
