//! The settings of the log, read and changed while the server runs, and the lines about requests.

use std::time::Duration;

use alipes_protocol::{Code, InferError};

use super::Service;
use crate::budget::Charge;
use crate::control::{ControlKind, ControlRequest};
use crate::events::Event;
use crate::log::{LogChange, LogSettings};
use crate::model::ModelVersion;

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
        let (settings, taken) = self.log.change(&change, announce)?;
        self.workers.pass_on_verbosity();
        taken.await.unwrap_or_else(|_| Err(InferError::new(Code::Unavailable, "Server is stopping")))?;
        Ok(settings)
    }

    /// Tells a verbose log how a request went.
    pub(super) fn log_request(&self, model: &ModelVersion, id: &str, spent: Duration, failure: Option<&InferError>) {
        if self.log.is_verbose() {
            self.events.tell(Event::Request {
                model: model.name.to_string(),
                version: model.spec.version,
                request_id: id.to_owned(),
                micros: u64::try_from(spent.as_micros()).unwrap_or(u64::MAX),
                failure: failure.map(|error| error.message.clone()),
            });
        }
    }
}

/// What a log setting that names the file is refused with. Source: Triton.
pub const FILE_IS_FIXED: &str = "log file location can not be updated through network protocol";
