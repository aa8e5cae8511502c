//! The settings of the log, read and changed while the server runs, and the log records of requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use alipes_protocol::{Code, InferError};
use alipes_request::budget::Charge;
use alipes_runtime::control::{ControlKind, ControlRequest};
use alipes_runtime::model::ModelVersion;
use alipes_spec::log::{LogChange, LogSettings};
use alipes_stats::events::{Event, EventQueue};
use compact_str::CompactString;

use super::Service;

impl Service {
    /// The settings of the log.
    pub fn log_settings(&self) -> LogSettings {
        self.log.settings()
    }

    /// Changes settings of the log; they are in force, in every worker too, when the future is done.
    ///
    /// # Errors
    ///
    /// `Unavailable` while the server stops.
    pub async fn change_log(&self, change: LogChange) -> Result<LogSettings, InferError> {
        if change == LogChange::default() {
            return Ok(self.log_settings());
        }
        let announce = |settings: &LogSettings| {
            let (kind, parameters) = (ControlKind::Log, settings.parameters());
            self.control.ask(ControlRequest { kind, model: String::new(), parameters }, Charge::default())
        };
        let (settings, applied) = self.log.change(&change, announce)?;
        self.log_changed();
        applied.await.unwrap_or_else(|_| Err(InferError::new(Code::Unavailable, "Server is stopping")))?;
        Ok(settings)
    }

    /// Logs the outcome of a request, where the log is verbose.
    pub(super) fn log_request(&self, model: &ModelVersion, id: &str, spent: Duration, failure: Option<&InferError>) {
        if self.log.is_verbose() {
            self.events.push(request(model, id, spent, failure.map(|error| error.message.clone())));
        }
    }

    /// Logs a request that was refused before it reached a model, where the log is verbose.
    pub fn log_refusal(&self, model: &str, version: &str, id: &str, failure: &InferError) {
        if self.log.is_verbose() {
            self.events.push(Event::Refused {
                model: model.to_owned(),
                version: version.to_owned(),
                request_id: id.to_owned(),
                failure: failure.message.clone(),
            });
        }
    }
}

/// The log record of a request whose responses are taken one by one; logged when it is dropped.
pub(super) struct RequestRecord {
    events: Arc<EventQueue>,
    model: Arc<ModelVersion>,
    id: CompactString,
    arrived: Instant,
    failure: Option<String>,
    ended: bool,
}

impl RequestRecord {
    /// The record of a request that was submitted to a model.
    pub(super) fn new(
        events: &Arc<EventQueue>,
        model: &Arc<ModelVersion>,
        id: &CompactString,
        arrived: Instant,
    ) -> RequestRecord {
        let (events, model, id) = (Arc::clone(events), Arc::clone(model), id.clone());
        RequestRecord { events, model, id, arrived, failure: None, ended: false }
    }

    /// A response was an error.
    pub(super) fn failed(&mut self, error: &InferError) {
        self.failure = Some(error.message.clone());
    }

    /// The last response was taken.
    pub(super) fn ended(mut self) {
        self.ended = true;
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        if !self.ended && self.failure.is_none() {
            self.failure = Some("its caller has gone".to_owned());
        }
        let spent = alipes_clock::elapsed(self.arrived);
        self.events.push(request(&self.model, &self.id, spent, self.failure.take()));
    }
}

fn request(model: &ModelVersion, id: &str, spent: Duration, failure: Option<String>) -> Event {
    Event::Request {
        model: model.name.to_string(),
        version: model.spec.version,
        request_id: id.to_owned(),
        micros: u64::try_from(spent.as_micros()).unwrap_or(u64::MAX),
        failure,
    }
}

/// The refusal of a log setting that names the file. Source: Triton.
pub const FILE_IS_FIXED: &str = "log file location can not be updated through network protocol";
