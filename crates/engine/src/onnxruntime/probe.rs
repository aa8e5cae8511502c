//! A model file that is asked what it takes and gives, and run to find out what it does not say.

use std::path::Path;

use alipes_protocol::Shape;

use super::check::{Declared, DeclaredPort};
use super::model::OnnxModel;
use super::options::SessionOptions;
use super::session::OnnxSession;
use super::signature::{Port, Signature};
use crate::{Engine, EngineError, InputView, OutputTensor};

/// A session that was loaded without optimizing it, on the calling thread alone.
#[derive(Debug)]
pub struct OnnxProbe {
    session: OnnxSession,
    signature: Signature,
}

impl OnnxProbe {
    /// Loads the model at `path`.
    ///
    /// # Errors
    ///
    /// As for [`OnnxModel::open`]; `Internal` or `Unsupported` where the library or alipes refuses the model.
    pub fn open(library: &Path, path: &Path) -> Result<OnnxProbe, EngineError> {
        let (session, signature) = OnnxModel::open(library, path, SessionOptions::for_reading())?.read()?;
        let (inputs, outputs) = (declared(&signature.inputs), declared(&signature.outputs));
        // With a batch dimension no tensor is taken for a scalar, so that shapes are the model's own.
        let declared = Declared { model_name: "", max_batch_size: 1, inputs: &inputs, outputs: &outputs };
        let session = OnnxSession::new(session, &signature, &declared, false)?;
        Ok(OnnxProbe { session, signature })
    }

    /// What the model takes and gives.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Runs the model once: a shape and row-major bytes for each input, in the signature's order.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where the number of inputs, or of bytes, is another one; else as for [`Engine::run`].
    pub fn run(&mut self, inputs: &[(Shape, Vec<u8>)]) -> Result<Vec<OutputTensor>, EngineError> {
        let ports = &self.signature.inputs;
        if inputs.len() != ports.len() {
            let message = format!("expected {} inputs, got {}", ports.len(), inputs.len());
            return Err(EngineError::invalid(message));
        }
        let mut views = Vec::with_capacity(inputs.len());
        for (index, (port, (shape, data))) in ports.iter().zip(inputs).enumerate() {
            let elements = alipes_protocol::shape::element_count(shape);
            let expected = port.datatype.size().zip(elements).and_then(|(size, count)| size.checked_mul(count));
            if port.datatype.size().is_some() && expected != Some(data.len()) {
                let message = format!("input '{}' has {} bytes, which its shape does not hold", port.name, data.len());
                return Err(EngineError::invalid(message));
            }
            views.push(InputView { index, datatype: port.datatype, shape, data });
        }
        let wanted: Vec<usize> = (0..self.signature.outputs.len()).collect();
        let mut outputs = Vec::new();
        self.session.run(&views, &wanted, &mut outputs)?;
        Ok(outputs)
    }
}

/// Ports as a configuration would declare them that knows the file.
fn declared(ports: &[Port]) -> Vec<DeclaredPort<'_>> {
    ports.iter().map(declared_port).collect()
}

fn declared_port(port: &Port) -> DeclaredPort<'_> {
    let Port { name, datatype, shape, .. } = port;
    DeclaredPort { name, datatype: *datatype, dims: shape, optional: false, ragged: false }
}
