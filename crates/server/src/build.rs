//! From a model's specification to a version that can run: the one long step of a load.

use std::sync::Arc;
use std::time::Instant;

use alipes_protocol::InferError;

use crate::books::metrics;
use crate::books::statistics::{Extras, FIRST_RESPONSE_EDGES, Statistics};
use crate::cache::Cached;
use crate::driver_native;
pub use crate::driver_native::onnxruntime::describe_onnx;
use crate::ensemble::{Ensemble, EnsembleDriver};
use crate::handlers::Service;
use crate::limiter::Limited;
use crate::model::ModelVersion;
use crate::model::driver::Driver;
use crate::spec::{EngineSpec, ModelSpec};
use crate::streaming::Streaming;
use crate::workers::Workers;

/// Loads every instance of a model version.
///
/// # Errors
///
/// What the engine refuses, with Triton's text where the model does not fit its configuration.
pub fn build(service: &Arc<Service>, mut spec: ModelSpec) -> Result<Arc<ModelVersion>, InferError> {
    if spec.instances.is_empty() && !matches!(spec.engine, EngineSpec::Ensemble(_)) {
        return Err(InferError::invalid(format!("must specify one or more 'instance group's for {}", spec.name)));
    }
    if service.limiter.is_none() {
        spec.limits.clear();
    }
    let began = Instant::now();
    let extras = extras(service, &spec);
    let driver = driver(service, &spec)?;
    let mut model = ModelVersion::new(spec, driver)?;
    model.statistics = Statistics::new(extras);
    if let Some(limiter) = &service.limiter {
        model.limited = Limited::new(limiter, &model.spec.limits)?;
    }
    model.events = Some(Arc::clone(&service.events));
    model.cache = cached(service, &model.spec);
    let model = Arc::new(model);
    model.driver.prepare(&model)?;
    let _ = model.load_time.set(began.elapsed());
    Ok(model)
}

/// What executes the model: the driver for its kind of engine.
fn driver(service: &Arc<Service>, spec: &ModelSpec) -> Result<Arc<dyn Driver>, InferError> {
    let weak = Arc::downgrade(service);
    Ok(match &spec.engine {
        EngineSpec::Onnxruntime(engine) => driver_native::load(spec, engine)?,
        EngineSpec::Ensemble(steps) => Arc::new(EnsembleDriver(Ensemble::new(spec, steps, &weak)?)),
        EngineSpec::Streaming(streaming) => Streaming::new(spec, streaming, &weak)?,
        EngineSpec::Worker(worker) => Arc::new(Workers::new(spec, worker, &weak)?),
    })
}

/// The cache, where the model wants its answers kept and each request has one. A model whose own configuration says that
/// requests have several was refused; an ensemble follows its models.
fn cached(service: &Service, spec: &ModelSpec) -> Option<Cached> {
    let cache = service.cache.as_ref().filter(|_| spec.response_cache && !spec.decoupled)?;
    Some(Cached::new(cache, spec))
}

/// What is kept of the model beyond the books of every model.
fn extras(service: &Service, spec: &ModelSpec) -> Extras {
    let edges = || spec.histogram_buckets.get(metrics::FIRST_RESPONSE).cloned();
    Extras {
        summaries: !service.config.summary_quantiles.is_empty(),
        first_response_edges: service
            .config
            .histogram_latencies
            .then(|| edges().unwrap_or_else(|| FIRST_RESPONSE_EDGES.to_vec())),
    }
}

/// Gives a version that serves the instances, and the configuration, of another specification of it. Those that it has
/// already go on; nothing is loaded again, and no request is lost.
///
/// # Errors
///
/// What the engine refuses, `InvalidArgument` where the specification is for another kind of engine. The version is as it
/// was then.
pub fn adapt(model: &Arc<ModelVersion>, spec: &ModelSpec) -> Result<(), InferError> {
    if spec.instances.is_empty() {
        return Err(InferError::invalid(format!("must specify one or more 'instance group's for {}", spec.name)));
    }
    let _one_at_a_time = model.changing.lock();
    model.driver.adapt(model, spec)?;
    model.set_configuration(spec)
}
