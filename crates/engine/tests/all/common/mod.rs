//! Where the tests find the library and the models, and a short way to load and run one.
use std::path::Path;

use alipes_engine::batch::{Gather, Member};
use alipes_engine::onnxruntime::{Declared, DeclaredPort, OnnxModel, OnnxSession, SessionOptions};
use alipes_engine::{Engine, EngineError, OutputTensor};
use alipes_protocol::Datatype;

pub use alipes_testkit::{golden_model as golden, onnx_vector as vector, onnxruntime_library as library};

/// Name, datatype and sizes without the batch dimension.
pub type Port<'a> = (&'a str, Datatype, &'a [i64]);

/// Loads one instance with the default options.
pub fn load(path: &Path, max_batch_size: u32, inputs: &[Port], outputs: &[Port]) -> Result<OnnxSession, EngineError> {
    load_with(SessionOptions::default(), path, max_batch_size, inputs, outputs)
}

/// Loads one instance.
pub fn load_with(
    options: SessionOptions,
    path: &Path,
    max_batch_size: u32,
    inputs: &[Port],
    outputs: &[Port],
) -> Result<OnnxSession, EngineError> {
    let (inputs, outputs) = (declare(inputs), declare(outputs));
    let declared = Declared { model_name: "m", max_batch_size, inputs: &inputs, outputs: &outputs };
    OnnxModel::open(&library(), path, options)?.session(&declared)
}

fn declare<'a>(ports: &[Port<'a>]) -> Vec<DeclaredPort<'a>> {
    let port = |&(name, datatype, dims)| DeclaredPort { name, datatype, dims, optional: false, ragged: false };
    ports.iter().map(port).collect()
}

/// Runs one request as the server does: through the gathered, aligned buffers.
pub fn run(session: &mut OnnxSession, inputs: &[Member], wanted: &[usize]) -> Result<Vec<OutputTensor>, EngineError> {
    let mut gather = Gather::default();
    let mut outputs = Vec::new();
    session.run(&gather.gather([inputs.iter().copied()])?, wanted, &mut outputs)?;
    Ok(outputs)
}

/// An input of one request.
pub fn input<'a>(index: usize, datatype: Datatype, shape: &'a [i64], data: &'a [u8]) -> Member<'a> {
    Member { index, datatype, shape, data }
}

/// Row-major bytes of floats.
pub fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
