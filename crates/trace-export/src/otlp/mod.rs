//! Records as spans, for an OpenTelemetry collector. Source: OTLP/HTTP, protobuf form.

mod message;
mod spans;

use std::sync::Arc;
use std::time::Duration;

use alipes_spec::trace::CollectorConfig;
use alipes_stats::events::{Event, EventQueue};
use prost::Message;
use tokio::runtime;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, timeout_at};

use crate::post::Target;
use crate::writer::{ERROR, Finished, INFO, Job, WARNING};
use message::{ExportTraceServiceRequest, KeyValue, Resource, ResourceSpans, Scope, ScopeSpans, Span};
use spans::Calendar;

/// Name under which spans are sent. Source: Triton.
const SCOPE: &str = "triton-server";

/// Back-off between attempts to reach a collector; after the last one the spans are dropped.
const BACK_OFF: [Duration; 3] = [Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(3)];

/// Sends spans until the channel of jobs closes, then the rest.
pub fn export(config: &CollectorConfig, jobs: Receiver<Job>, events: &Arc<EventQueue>) {
    let log = |level, text| events.push(Event::Notice { level, text });
    let target = match Target::of(&config.url, config.certificate.as_deref()) {
        Ok(target) => target,
        Err(text) => return log(ERROR, format!("spans cannot be sent: {text}")),
    };
    match runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(Exporter::new(config, target, Arc::clone(events)).run(jobs)),
        Err(error) => log(ERROR, format!("spans cannot be sent: {error}")),
    }
}

struct Exporter<'a> {
    config: &'a CollectorConfig,
    target: Target,
    events: Arc<EventQueue>,
    calendar: Calendar,
    waiting: Vec<Span>,
    failing: bool,
}

impl<'a> Exporter<'a> {
    fn new(config: &'a CollectorConfig, target: Target, events: Arc<EventQueue>) -> Exporter<'a> {
        Exporter { config, target, events, calendar: Calendar::now(), waiting: Vec::new(), failing: false }
    }

    /// A batch is sent when it is large enough, or when its first span has waited long enough.
    async fn run(mut self, mut jobs: Receiver<Job>) {
        let batch = (self.config.max_export_batch_size.max(1)) as usize;
        let mut due = Instant::now() + self.config.delay();
        loop {
            let next = timeout_at(due, jobs.recv()).await;
            let over = matches!(next, Ok(None));
            if let Ok(Some(Job::Finished(finished))) = next {
                self.take(&finished);
            }
            let late = Instant::now() >= due;
            while self.waiting.len() >= batch || ((late || over) && !self.waiting.is_empty()) {
                let rest = self.waiting.split_off(self.waiting.len().min(batch));
                let spans = std::mem::replace(&mut self.waiting, rest);
                self.send(spans, over).await;
            }
            if over {
                return;
            }
            if late {
                due = Instant::now() + self.config.delay();
            }
        }
    }

    fn take(&mut self, finished: &Finished) {
        let Some(context) = &finished.context else { return };
        let room = (self.config.max_queue_size as usize).saturating_sub(self.waiting.len());
        self.waiting.extend(spans::spans(self.calendar, context, &finished.records).into_iter().take(room));
    }

    /// Sends a batch, with retries; the last batches get one attempt each.
    async fn send(&mut self, spans: Vec<Span>, last: bool) {
        let count = spans.len();
        let body = self.request(spans).encode_to_vec();
        let back_off = if last { &[][..] } else { &BACK_OFF[..] };
        let mut outcome = self.target.post(body.clone()).await;
        for &pause in back_off {
            match &outcome {
                Err(failure) if failure.passes => tokio::time::sleep(pause).await,
                _ => break,
            }
            outcome = self.target.post(body.clone()).await;
        }
        self.log_outcome(outcome.map_err(|failure| failure.text).err(), count);
    }

    /// Logs the first failure, and the first success after failures.
    fn log_outcome(&mut self, failure: Option<String>, count: usize) {
        let (level, text) = match failure {
            Some(text) if !self.failing => (WARNING, format!("{count} spans were not taken: {text}")),
            None if self.failing => (INFO, "spans are taken again".to_owned()),
            _ => return,
        };
        self.failing = !self.failing;
        let text = format!("collector {}: {text}", self.config.url);
        self.events.push(Event::Notice { level, text });
    }

    fn request(&self, spans: Vec<Span>) -> ExportTraceServiceRequest {
        let attributes = self.config.resource.iter().map(|(key, value)| KeyValue::text(key, value)).collect();
        let scope = Scope { name: SCOPE.to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(Resource { attributes }),
                scope_spans: vec![ScopeSpans { scope: Some(scope), spans }],
            }],
        }
    }
}
