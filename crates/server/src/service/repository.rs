//! The repository: what there is, and requests to load and unload.

use alipes_protocol::{Code, InferError, Parameter};

use super::Service;
use crate::budget::Charge;
use crate::control::{ControlKind, ControlRequest};
use crate::registry::IndexEntry;
use crate::spec::ControlMode;

/// Triton's words for a server that loads nothing on request, whatever the reason.
const NOT_ALLOWED: &str = "explicit model load / unload is not allowed if polling is enabled";

/// Parameters wait as they are, and once more in the form in which the control plane takes them.
const COPIES_OF_PARAMETERS: usize = 2;

/// State of a version that answers.
const READY: &str = "READY";

impl Service {
    /// The repository index.
    pub fn repository_index(&self, ready_only: bool) -> Vec<IndexEntry> {
        let index = self.registry.index();
        let entries = index.iter().map(|entry| self.as_it_is(entry));
        entries.filter(|entry| !ready_only || entry.state == READY).collect()
    }

    /// The control plane knows what was loaded; whether its workers are up is known here.
    fn as_it_is(&self, entry: &IndexEntry) -> IndexEntry {
        let mut entry = entry.clone();
        if entry.state == READY
            && let Ok(model) = self.lookup(&entry.name, &entry.version)
            && !model.is_ready()
        {
            entry.state = "UNAVAILABLE".to_owned();
            entry.reason = "its worker processes are being started again".to_owned();
        }
        entry
    }

    /// Has the control plane load a model, and waits until it serves or has failed. The charge of what brought the
    /// parameters stays with them.
    ///
    /// # Errors
    ///
    /// `Unavailable` unless the server takes such requests, `Overloaded` where there is no room for this one; else the
    /// control plane's reason.
    pub async fn load_model(
        &self,
        name: &str,
        parameters: Vec<(String, Parameter)>,
        mut charge: Charge,
    ) -> Result<(), InferError> {
        charge.grow(&self.budget, COPIES_OF_PARAMETERS * parameters.iter().map(bytes_of).sum::<usize>())?;
        self.ask_control(ControlKind::Load, name, parameters, charge).await
    }

    /// Has the control plane take a model out of service.
    ///
    /// # Errors
    ///
    /// `Unavailable` unless the server takes such requests; else the control plane's reason.
    pub async fn unload_model(&self, name: &str, unload_dependents: bool) -> Result<(), InferError> {
        let parameters = vec![("unload_dependents".to_owned(), Parameter::Bool(unload_dependents))];
        self.ask_control(ControlKind::Unload, name, parameters, Charge::default()).await
    }

    async fn ask_control(
        &self,
        kind: ControlKind,
        name: &str,
        parameters: Vec<(String, Parameter)>,
        charge: Charge,
    ) -> Result<(), InferError> {
        if self.config.control_mode != ControlMode::Explicit {
            return Err(InferError::new(Code::Unavailable, NOT_ALLOWED));
        }
        let answer = self.control.ask(ControlRequest { kind, model: name.to_owned(), parameters }, charge)?;
        answer.await.unwrap_or_else(|_| Err(InferError::internal("the control plane dropped the request")))
    }
}

fn bytes_of((key, value): &(String, Parameter)) -> usize {
    key.len() + if let Parameter::String(text) = value { text.len() } else { 0 }
}
