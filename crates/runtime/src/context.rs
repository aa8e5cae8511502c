//! What the drivers of a server share: the registry, its events and settings, and the control plane's queue.
//!
//! The service owns the context. Drivers keep weak references: the registry holds model versions, and these hold their
//! drivers.

use std::sync::Arc;
use std::time::Instant;

use alipes_protocol::{Code, InferError, Parameter};
use alipes_request::budget::{Budget, Charge};
use alipes_spec::{ControlMode, ModelSpec, ServerConfig};
use alipes_stats::Log;
use alipes_stats::custom::CustomMetrics;
use alipes_stats::events::EventQueue;
use alipes_stats::turn::TurnMeters;

use crate::cache::ResponseCache;
use crate::control::{ControlKind, ControlQueue, ControlRequest};
use crate::limiter::Limiter;
use crate::model::driver::{Driver, DriverFactory};
use crate::model::waiting::Waits;
use crate::pages::Pages;
use crate::reactors::Reactors;
use crate::registry::Registry;
use crate::traffic::Traffic;

/// Triton's words for a server that loads nothing on request, whatever the reason.
const NOT_ALLOWED: &str = "explicit model load / unload is not allowed if polling is enabled";

/// Copies of the parameters that wait: as they came, and in the form in which the control plane takes them.
const COPIES_OF_PARAMETERS: usize = 2;

/// The shared parts of one server.
pub struct Context {
    /// Its configuration.
    pub config: ServerConfig,
    /// The models that are ready.
    pub registry: Registry,
    /// How requests that name no version are divided among versions.
    pub traffic: Traffic,
    /// Requests for the control plane.
    pub control: ControlQueue,
    /// Bytes of requests and answers in flight.
    pub budget: Arc<Budget>,
    /// The event loops of the network threads.
    pub reactors: Reactors,
    /// How long their turns are.
    pub turns: Arc<TurnMeters>,
    /// Pages that the control plane has written.
    pub pages: Pages,
    /// Metrics that models keep.
    pub metrics: CustomMetrics,
    /// The calls of models that are waited for.
    pub waits: Arc<Waits>,
    /// Events for the log.
    pub events: Arc<EventQueue>,
    /// Settings of the log.
    pub log: Arc<Log>,
    /// The rate limiter, where executions are limited.
    pub limiter: Option<Arc<Limiter>>,
    /// The response cache, where there is one.
    pub cache: Option<Arc<ResponseCache>>,
    factories: Vec<Box<dyn DriverFactory>>,
}

impl Context {
    /// A context without models, and the factories of the drivers that this build offers.
    pub fn new(config: ServerConfig, factories: Vec<Box<dyn DriverFactory>>) -> Context {
        let budget = Budget::new(config.inflight_bytes);
        let cache = || Arc::new(ResponseCache::new(config.response_cache_bytes, &budget));
        let events = Arc::<EventQueue>::default();
        let registry = Registry::default();
        // The recorded release gives no reasons.
        if !config.http_restricted.is_empty() || !config.triton_release.is_later() {
            registry.conceal();
        }
        Context {
            cache: (config.response_cache_bytes > 0).then(cache),
            limiter: config.rate_limit.as_ref().map(|limits| Arc::new(Limiter::new(limits))),
            log: Arc::new(Log::new(config.log.clone())),
            turns: Arc::new(TurnMeters::new(config.turn_clock, Arc::clone(&events))),
            budget,
            config,
            registry,
            traffic: Traffic::default(),
            control: ControlQueue::default(),
            reactors: Reactors::default(),
            pages: Pages::default(),
            metrics: CustomMetrics::default(),
            waits: Arc::default(),
            events,
            factories,
        }
    }

    /// Makes the driver for a specification's kind of engine.
    ///
    /// # Errors
    ///
    /// `Unsupported` where this build has no driver for the engine; else the factory's error.
    pub fn make_driver(self: &Arc<Self>, spec: &ModelSpec) -> Result<Arc<dyn Driver>, InferError> {
        let kind = spec.engine.kind();
        let factory = self.factories.iter().find(|factory| factory.kind() == kind).ok_or_else(|| {
            InferError::new(Code::Unsupported, format!("this build of the server has no driver for engine '{kind}'"))
        })?;
        factory.make(self, spec)
    }

    /// Passes changed settings of the log on to the drivers.
    pub fn log_changed(&self) {
        self.factories.iter().for_each(|factory| factory.log_changed());
    }

    /// Stops what the drivers have started; false where the deadline came first.
    pub fn stop_drivers(&self, deadline: Instant) -> bool {
        // Every factory, also after one whose deadline has passed.
        self.factories.iter().filter(|factory| !factory.stop(deadline)).count() == 0
    }

    /// Whether a model can answer, and says so where it takes part.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a version that is no number, `NotFound` for an unknown model or version, `Unavailable` for
    /// a version that does not serve; in Triton 2.51 these are not ready.
    pub async fn model_ready(&self, name: &str, version: &str) -> Result<bool, InferError> {
        match self.registry.find(name, version) {
            Ok(model) if !model.is_ready() => Ok(false),
            Ok(model) => match model.ask_ready() {
                Some(answer) => Ok(answer.await),
                None => Ok(true),
            },
            Err(error)
                if matches!(error.code, Code::NotFound | Code::Unavailable)
                    && !self.config.triton_release.is_later() =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Has the control plane load a model, and waits until it serves or has failed. The charge of the request that
    /// brought the parameters stays with them.
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
        if self.config.triton_release.is_later() {
            check_name(name)?;
        }
        let answer = self.control.ask(ControlRequest { kind, model: name.to_owned(), parameters }, charge)?;
        answer.await.unwrap_or_else(|_| Err(InferError::internal("the control plane dropped the request")))
    }
}

/// Refuses a name that would lead elsewhere as a part of a path. Source: Triton, since 2.73.
fn check_name(name: &str) -> Result<(), InferError> {
    if name.is_empty() {
        return Err(InferError::invalid("invalid model name '', model name must not be empty"));
    }
    if name.contains("..") || name.contains(['/', '\\']) {
        let text = format!("invalid model name '{name}', model name must not contain path traversal characters");
        return Err(InferError::invalid(text));
    }
    Ok(())
}

fn bytes_of((key, value): &(String, Parameter)) -> usize {
    key.len() + if let Parameter::String(text) = value { text.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_that_leads_elsewhere_is_refused() {
        for name in ["", "..", "a..b", "../a", "a/b", "a\\b"] {
            let refused = check_name(name).unwrap_err();
            assert!(
                refused.message.starts_with(&format!("invalid model name '{name}', model name must not")),
                "{name}"
            );
        }
        for name in ["a", "a.b", ".a", "<a>", "modèle"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn an_engine_without_a_driver_is_refused_by_name() {
        let endpoint = json!({"enabled": false, "address": "127.0.0.1", "port": 0});
        let config = json!({
            "schema": 1, "id": "alipes-test", "http": endpoint, "grpc": endpoint, "metrics": endpoint,
            "control_mode": "none", "counter_latencies": true, "cpu_metrics": false,
        });
        let spec = json!({
            "schema": 1, "name": "m", "version": 1, "platform": "test", "max_batch_size": 0,
            "inputs": [], "outputs": [], "scheduling": {"kind": "direct"}, "instances": ["i"],
            "engine": {"kind": "ensemble", "steps": []},
            "config_json": "{}", "config_proto": "", "metric_tags": {},
        });
        let context = Arc::new(Context::new(serde_json::from_value(config).unwrap(), Vec::new()));
        let refused = context.make_driver(&serde_json::from_value(spec).unwrap()).err().expect("there is no driver");
        assert_eq!(refused.message, "this build of the server has no driver for engine 'ensemble'");
    }
}
