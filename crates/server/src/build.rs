//! From a model's specification to a version that can run: the one long step of a load.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use alipes_engine::onnxruntime::{
    self, Declared, DeclaredPort, ExecutionMode, GraphOptimization, OnnxModel, SessionOptions,
};
use alipes_engine::{Engine, EngineError};
use alipes_protocol::{Code, InferError};
use serde::Serialize;

use crate::books::metrics;
use crate::books::statistics::{Extras, FIRST_RESPONSE_EDGES, Statistics};
use crate::cache::Cached;
use crate::driver_native::slots::Slots;
use crate::ensemble::Ensemble;
use crate::handlers::Service;
use crate::limiter::Limited;
use crate::model::{Drivers, ModelVersion, layout};
use crate::priority::{self, Priority};
use crate::sequences::{FurtherPort, Sequences};
use crate::spec::{EngineSpec, ModelSpec, OnnxruntimeSpec, Port};
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
    let drivers = match &spec.engine {
        EngineSpec::Onnxruntime(engine) => {
            let (active, passive) = (spec.instances.len(), spec.passive_instances.len());
            let mut sessions = onnx_sessions(&spec, engine, active + passive)?;
            let passive = sessions.split_off(active);
            Drivers::Native(Slots::new(sessions).beside(passive))
        }
        EngineSpec::Ensemble(steps) => Drivers::Ensemble(Ensemble::new(&spec, steps, &Arc::downgrade(service))?),
        EngineSpec::Streaming(streaming) => {
            Drivers::Streaming(Box::new(Streaming::new(&spec, streaming, &Arc::downgrade(service))?))
        }
        EngineSpec::Worker(worker) => Drivers::Workers(Workers::new(&spec, worker, &Arc::downgrade(service))?),
    };
    let mut model = ModelVersion::new(spec, drivers)?;
    model.statistics = Statistics::new(extras);
    if let Some(limiter) = &service.limiter {
        model.limited = Limited::new(limiter, &model.spec.limits)?;
    }
    model.events = Some(Arc::clone(&service.events));
    model.cache = cached(service, &model.spec);
    let model = Arc::new(model);
    match &model.drivers {
        Drivers::Native(slots) => slots.warm_up(&model)?,
        // Each warms up on its own, at each of its starts.
        Drivers::Workers(workers) => service.workers.start(service, &model, &workers.everyone())?,
        // Their arithmetic is warm from the start.
        Drivers::Ensemble(_) | Drivers::Streaming(_) => {}
    }
    let _ = model.load_time.set(began.elapsed());
    Ok(model)
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
pub fn adapt(service: &Arc<Service>, model: &Arc<ModelVersion>, spec: &ModelSpec) -> Result<(), InferError> {
    if spec.instances.is_empty() {
        return Err(InferError::invalid(format!("must specify one or more 'instance group's for {}", spec.name)));
    }
    let _one_at_a_time = model.changing.lock();
    match (&model.drivers, &spec.engine) {
        (Drivers::Native(slots), EngineSpec::Onnxruntime(engine)) => {
            let (has, wants) = (slots.count(), spec.instances.len());
            if wants > has {
                slots.grow(model, onnx_sessions(spec, engine, wants - has)?)?;
            } else if wants < has {
                slots.shrink(model, wants);
            }
        }
        (Drivers::Workers(workers), EngineSpec::Worker(worker)) => workers.change(service, model, spec, worker)?,
        // Slots belong to sequences, whatever instances there are.
        (Drivers::Streaming(_), EngineSpec::Streaming(_)) => {}
        _ => return Err(InferError::invalid(format!("model '{}' runs in another engine", spec.name))),
    }
    model.set_configuration(spec)
}

/// So many sessions, loaded side by side: reading and optimizing a model uses one thread each.
fn onnx_sessions(
    spec: &ModelSpec,
    engine: &OnnxruntimeSpec,
    count: usize,
) -> Result<Vec<Box<dyn Engine>>, EngineError> {
    let model = OnnxModel::open(Path::new(&engine.library), Path::new(&engine.model_path), options(engine)?)?;
    let (mut inputs, mut outputs) = (declared_ports(&spec.inputs), declared_ports(&spec.outputs));
    let further = spec.scheduling.sequences().map(|said| Sequences::further_ports(said, &spec.outputs));
    if let Some(further) = &further {
        inputs.extend(further.inputs.iter().map(FurtherPort::declared));
        outputs.extend(further.outputs.iter().map(FurtherPort::declared));
    } else {
        // In sequences the positions behind the inputs are those of controls and states.
        inputs.extend(layout::made_ports(spec));
    }
    if let Some(layout) = layout::of(spec) {
        layout.scattered.iter().for_each(|&(output, _)| outputs[output].ragged = true);
    }
    let declared =
        Declared { model_name: &spec.name, max_batch_size: spec.max_batch_size, inputs: &inputs, outputs: &outputs };
    let load = || {
        // The engine's own threads inherit the priority of the one that loads it.
        priority::set(Priority::Engine);
        model.session(&declared).map(|session| Box::new(session) as Box<dyn Engine>)
    };
    thread::scope(|scope| {
        let loading: Vec<_> = (0..count).map(|_| scope.spawn(load)).collect();
        let panicked = |_| Err(EngineError::internal("loading an instance panicked, please report it"));
        loading.into_iter().map(|loading| loading.join().unwrap_or_else(panicked)).collect()
    })
}

fn declared_ports(ports: &[Port]) -> Vec<DeclaredPort<'_>> {
    ports.iter().map(declared_port).collect()
}

fn declared_port(port: &Port) -> DeclaredPort<'_> {
    DeclaredPort {
        name: &port.name,
        datatype: port.datatype,
        dims: port.reshape.as_deref().unwrap_or(&port.dims),
        optional: port.optional,
        ragged: port.allow_ragged_batch,
    }
}

fn options(engine: &OnnxruntimeSpec) -> Result<SessionOptions, EngineError> {
    Ok(SessionOptions {
        intra_op_threads: threads(engine.intra_op_threads, "intra_op")?,
        inter_op_threads: threads(engine.inter_op_threads, "inter_op")?,
        execution_mode: match engine.execution_mode.as_str() {
            "parallel" => ExecutionMode::Parallel,
            "sequential" => ExecutionMode::Sequential,
            other => return Err(EngineError::invalid(format!("unknown execution mode '{other}'"))),
        },
        graph_optimization: match engine.graph_optimization.as_str() {
            "disable" => GraphOptimization::Disable,
            "basic" => GraphOptimization::Basic,
            "extended" => GraphOptimization::Extended,
            "all" => GraphOptimization::All,
            other => return Err(EngineError::invalid(format!("unknown graph optimization '{other}'"))),
        },
        session_config: engine.session_config.clone().into_iter().collect(),
        memory_arena: engine.memory_arena,
    })
}

fn threads(count: i32, what: &str) -> Result<u32, EngineError> {
    u32::try_from(count).map_err(|_| EngineError::invalid(format!("{count} {what} threads are out of range")))
}

#[derive(Serialize)]
struct SignatureDocument<'a> {
    inputs: Vec<PortDocument<'a>>,
    outputs: Vec<PortDocument<'a>>,
}

#[derive(Serialize)]
struct PortDocument<'a> {
    name: &'a str,
    datatype: &'static str,
    shape: &'a [i64],
}

impl<'a> From<&'a onnxruntime::Port> for PortDocument<'a> {
    fn from(port: &'a onnxruntime::Port) -> Self {
        PortDocument { name: &port.name, datatype: port.datatype.name(), shape: &port.shape }
    }
}

/// Inputs and outputs of an ONNX file, as JSON.
///
/// # Errors
///
/// The library or the file cannot be loaded.
pub fn describe_onnx(library: &str, path: &str) -> Result<String, InferError> {
    let signature = onnxruntime::describe(Path::new(library), Path::new(path))?;
    let document = SignatureDocument {
        inputs: signature.inputs.iter().map(PortDocument::from).collect(),
        outputs: signature.outputs.iter().map(PortDocument::from).collect(),
    };
    serde_json::to_string(&document).map_err(|error| InferError::new(Code::Internal, error.to_string()))
}
