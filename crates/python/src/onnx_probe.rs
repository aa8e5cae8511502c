//! A loaded ONNX file that a load asks and runs.

use std::path::Path;

use alipes_engine::onnxruntime::{self, Port};
use alipes_protocol::Shape;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;

use super::detached::{Failure, detached};

/// An ONNX file, loaded without optimizing it.
#[pyclass(frozen, module = "alipes._core")]
pub struct OnnxProbe {
    probe: Mutex<onnxruntime::OnnxProbe>,
}

type Output<'py> = (&'static str, Vec<i64>, Bound<'py, PyBytes>);

#[pymethods]
impl OnnxProbe {
    #[new]
    fn new(py: Python<'_>, library: &str, path: &str) -> PyResult<OnnxProbe> {
        detached(py, || {
            let probe = onnxruntime::OnnxProbe::open(Path::new(library), Path::new(path));
            Ok(OnnxProbe { probe: Mutex::new(probe.map_err(|error| Failure::Load(error.into()))?) })
        })
    }

    /// Inputs and outputs, as JSON.
    fn signature(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, || {
            let probe = self.probe.lock();
            let signature = probe.signature();
            let ports = |ports: &[Port]| ports.iter().map(PortDocument::from).collect();
            let document = SignatureDocument { inputs: ports(&signature.inputs), outputs: ports(&signature.outputs) };
            Ok(serde_json::to_string(&document)?)
        })
    }

    /// Runs it once.
    fn run<'py>(&self, py: Python<'py>, inputs: Vec<(Vec<i64>, Vec<u8>)>) -> PyResult<Vec<Output<'py>>> {
        let outputs = detached(py, || {
            let inputs: Vec<(Shape, Vec<u8>)> =
                inputs.into_iter().map(|(shape, data)| (Shape::from_vec(shape), data)).collect();
            self.probe.lock().run(&inputs).map_err(|error| Failure::Load(error.into()))
        })?;
        let output = |output: alipes_engine::OutputTensor| {
            (output.datatype.name(), output.shape.to_vec(), PyBytes::new(py, &output.data))
        };
        Ok(outputs.into_iter().map(output).collect())
    }
}

#[derive(Serialize)]
struct SignatureDocument {
    inputs: Vec<PortDocument>,
    outputs: Vec<PortDocument>,
}

/// A port as `alipes.signature` reads it.
#[derive(Serialize)]
struct PortDocument {
    name: String,
    datatype: &'static str,
    shape: Vec<i64>,
    symbols: Vec<String>,
}

impl From<&Port> for PortDocument {
    fn from(port: &Port) -> PortDocument {
        let Port { name, datatype, shape, symbols } = port.clone();
        PortDocument { name, datatype: datatype.name(), shape: shape.to_vec(), symbols }
    }
}
