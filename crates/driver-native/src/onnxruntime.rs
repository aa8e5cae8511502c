//! Sessions of ONNX Runtime for the instances of a model.

use std::path::{Path, PathBuf};
use std::thread;

use alipes_engine::onnxruntime::{
    self, Declared, DeclaredPort, ExecutionMode, GraphOptimization, OnnxModel, Provider, ProviderKind, SessionOptions,
};
use alipes_engine::{Engine, EngineError};
use alipes_runtime::model::layout;
use alipes_runtime::sequences::{FurtherPort, Sequences};
use alipes_spec::{self as documents, ModelSpec, OnnxruntimeSpec, Port, ProviderSpec};
use alipes_stats::priority::{self, Priority};

/// Loads a session for each of these places, a GPU's number or none for the processor. They load in parallel: reading
/// and optimizing a model uses one thread each.
///
/// # Errors
///
/// What the engine refuses, with Triton's text where the model does not fit its configuration.
pub fn sessions(
    spec: &ModelSpec,
    engine: &OnnxruntimeSpec,
    gpus: &[Option<u32>],
) -> Result<Vec<Box<dyn Engine>>, EngineError> {
    let model = OnnxModel::open(Path::new(&engine.library), Path::new(&engine.model_path), options(engine)?)?;
    let (mut inputs, mut outputs) = (declared_ports(&spec.inputs), declared_ports(&spec.outputs));
    let further = spec.scheduling.sequences().map(|sequencing| Sequences::further_ports(sequencing, &spec.outputs));
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
    if gpus.iter().any(Option::is_some) {
        let libraries: Vec<PathBuf> = engine.gpu_libraries.iter().map(PathBuf::from).collect();
        onnxruntime::open_libraries(&libraries);
    }
    let load = |gpu: Option<u32>| {
        // The engine's own threads inherit the priority of the one that loads it.
        priority::set(Priority::Compute);
        let providers = gpu.map(|gpu| providers(&engine.gpu_providers, gpu)).unwrap_or_default();
        model.session_on(&declared, &providers).map(|session| Box::new(session) as Box<dyn Engine>)
    };
    thread::scope(|scope| {
        let load = &load;
        let loading: Vec<_> = gpus.iter().map(|&gpu| scope.spawn(move || load(gpu))).collect();
        let panicked = |_| Err(EngineError::internal("loading an instance panicked, please report it"));
        loading.into_iter().map(|loading| loading.join().unwrap_or_else(panicked)).collect()
    })
}

/// The providers of a session on this GPU.
fn providers(specs: &[ProviderSpec], gpu: u32) -> Vec<Provider> {
    let provider = |spec: &ProviderSpec| {
        let device = ("device_id".to_owned(), gpu.to_string());
        let kind = match spec.kind {
            documents::ProviderKind::Cuda => ProviderKind::Cuda,
            documents::ProviderKind::Tensorrt => ProviderKind::Tensorrt,
        };
        Provider { kind, options: spec.options.clone().into_iter().chain([device]).collect() }
    };
    specs.iter().map(provider).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_provider_gets_its_gpu() {
        let specs: Vec<ProviderSpec> = serde_json::from_value(serde_json::json!([
            {"kind": "tensorrt", "options": {"trt_fp16_enable": "1"}},
            {"kind": "cuda"},
        ]))
        .unwrap();
        let device = || ("device_id".to_owned(), "3".to_owned());
        let fp16 = ("trt_fp16_enable".to_owned(), "1".to_owned());
        let expected = [
            Provider { kind: ProviderKind::Tensorrt, options: vec![fp16, device()] },
            Provider { kind: ProviderKind::Cuda, options: vec![device()] },
        ];
        assert_eq!(providers(&specs, 3), expected);
    }
}
