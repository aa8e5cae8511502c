//! From a model's specification to a version that can run: the one long step of a load.

use std::sync::Arc;

use alipes_protocol::InferError;
use alipes_spec::{EngineSpec, ModelSpec};
use alipes_stats::metrics;
use alipes_stats::statistics::{Extras, FIRST_RESPONSE_EDGES, Statistics};

use crate::cache::Cached;
use crate::cancellation::Cancellation;
use crate::context::Context;
use crate::limiter::Limited;
use crate::model::ModelVersion;
use crate::model::pace::Pace;
use crate::tuning::{self, Tuning};

/// Loads every instance of a model version. A cancellation ends worker processes; an engine that reads a model cannot
/// be ended, and what it has loaded is freed once it has.
///
/// # Errors
///
/// What the engine refuses, with Triton's text where the model does not fit its configuration; `Unavailable` where the
/// load was cancelled.
pub fn build(
    context: &Arc<Context>,
    mut spec: ModelSpec,
    cancellation: &Cancellation,
) -> Result<Arc<ModelVersion>, InferError> {
    if spec.instances.is_empty() && !matches!(spec.engine, EngineSpec::Ensemble(_)) {
        return Err(InferError::invalid(format!("must specify one or more 'instance group's for {}", spec.name)));
    }
    if context.limiter.is_none() {
        spec.limits.clear();
    }
    let began = alipes_clock::now();
    let extras = extras(context, &spec);
    let driver = context.make_driver(&spec)?;
    cancellation.check()?;
    let mut model = ModelVersion::new(spec, driver)?;
    model.statistics = Statistics::new(extras);
    model.pace = Pace::of(context.config.paths.execution_threads);
    if let Some(limiter) = &context.limiter {
        model.limited = Limited::new(limiter, &model.spec.limits)?;
    }
    model.budget = Arc::clone(&context.budget);
    model.events = Some(Arc::clone(&context.events));
    model.log = Some(Arc::clone(&context.log));
    model.cache = cached(context, &model.spec);
    let model = Arc::new(model);
    model.driver.prepare(&model, cancellation)?;
    cancellation.check()?;
    tuning::begin(&model);
    let _ = model.load_time.set(alipes_clock::elapsed(began));
    Ok(model)
}

/// The response cache, where the model asks for it and each request has one answer. The control plane refuses a
/// decoupled model that asks; an ensemble is decoupled where one of its models is.
fn cached(context: &Context, spec: &ModelSpec) -> Option<Cached> {
    let cache = context.cache.as_ref().filter(|_| spec.response_cache && !spec.decoupled)?;
    Some(Cached::new(cache, spec))
}

/// The optional statistics of the model.
fn extras(context: &Context, spec: &ModelSpec) -> Extras {
    let edges = || spec.histogram_buckets.get(metrics::FIRST_RESPONSE).cloned();
    Extras {
        summaries: !context.config.summary_quantiles.is_empty(),
        first_response_edges: context
            .config
            .histogram_latencies
            .then(|| edges().unwrap_or_else(|| FIRST_RESPONSE_EDGES.to_vec())),
        latency_edges: spec.tuning.as_ref().map(Tuning::latency_edges),
    }
}

/// Changes the instances and the configuration of a serving version to those of another specification. Instances that
/// it has already go on: nothing is loaded again, and no request is lost.
///
/// # Errors
///
/// What the engine refuses, `InvalidArgument` where the specification is for another kind of engine, or `Unavailable`
/// where the load was cancelled. The version is unchanged then.
pub fn adapt(model: &Arc<ModelVersion>, spec: &ModelSpec, cancellation: &Cancellation) -> Result<(), InferError> {
    if spec.instances.is_empty() {
        return Err(InferError::invalid(format!("must specify one or more 'instance group's for {}", spec.name)));
    }
    let _one_at_a_time = model.changing.lock();
    model.driver.adapt(model, spec, cancellation)?;
    model.set_configuration(spec)
}
