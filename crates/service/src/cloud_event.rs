//! The event that answers a request of the V1 protocol which is one.

use std::time::{SystemTime, UNIX_EPOCH};

use alipes_predict::{ANSWER_SOURCE, ANSWER_TYPE, CloudEvent, CloudEventAnswer, time_text};

use super::Service;

impl Service {
    /// The event that answers another, by which a model was asked.
    pub fn answer_event(&self, event: &CloudEvent, model: &str) -> CloudEventAnswer {
        let spec = &self.config.cloud_events;
        let source = spec.source.clone().unwrap_or_else(|| format!("{ANSWER_SOURCE}{model}"));
        let kind = spec.kind.as_deref().unwrap_or(ANSWER_TYPE);
        // Events name moments of the world, whatever clock the server runs by.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        event.answer([&self.event_ids.next(), &source, kind, &time_text(unix_ns)])
    }
}
