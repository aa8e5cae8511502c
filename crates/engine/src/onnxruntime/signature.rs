//! What a model file says of its own inputs and outputs.

use alipes_protocol::{Code, Datatype, Shape};
use ort::session::Session;
use ort::value::{Outlet, TensorElementType, ValueType};

use crate::EngineError;

/// An input or output as the model file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Name of the tensor.
    pub name: String,
    /// Element type.
    pub datatype: Datatype,
    /// Sizes; -1 where the model takes or gives any.
    pub shape: Shape,
    /// What the model calls each size that it leaves open; empty for the others. Sizes with one name are equal.
    pub symbols: Vec<String>,
}

/// The inputs and outputs of a model, in the model file's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// What it takes.
    pub inputs: Vec<Port>,
    /// What it gives.
    pub outputs: Vec<Port>,
}

/// The signature of a loaded model.
///
/// # Errors
///
/// `Unsupported` where an input or output is not a tensor, or its elements have no datatype in the protocol.
pub(super) fn read(session: &Session) -> Result<Signature, EngineError> {
    let inputs = session.inputs().iter().map(|outlet| port(outlet, "input"));
    let outputs = session.outputs().iter().map(|outlet| port(outlet, "output"));
    Ok(Signature { inputs: inputs.collect::<Result<_, _>>()?, outputs: outputs.collect::<Result<_, _>>()? })
}

fn port(outlet: &Outlet, word: &str) -> Result<Port, EngineError> {
    let unsupported = |what: &str| EngineError {
        code: Code::Unsupported,
        message: format!("unsupported {what} for {word} '{}'", outlet.name()),
    };
    match outlet.dtype() {
        ValueType::Tensor { ty, shape, dimension_symbols } => {
            let datatype = datatype_of(*ty).ok_or_else(|| unsupported(&format!("element type {ty:?}")))?;
            // A negative size is the library's word for "any", whatever its value.
            let shape = shape.iter().map(|&size| size.max(-1)).collect();
            Ok(Port { name: outlet.name().to_owned(), datatype, shape, symbols: dimension_symbols.to_vec() })
        }
        ValueType::Sequence(_) => Err(with_advice(unsupported("value type sequence"))),
        ValueType::Map { .. } => Err(with_advice(unsupported("value type map"))),
        ValueType::Optional(_) => Err(unsupported("value type optional")),
    }
}

/// What the maker of a classifier does whose probabilities are a map for each row, as converters write them by default.
fn with_advice(mut error: EngineError) -> EngineError {
    error.message += ", for only tensors are served: convert the model with options={'zipmap': False} (skl2onnx, \
                      onnxmltools), or remove its node ZipMap (CatBoost)";
    error
}

fn datatype_of(element: TensorElementType) -> Option<Datatype> {
    Some(match element {
        TensorElementType::Bool => Datatype::Bool,
        TensorElementType::Uint8 => Datatype::Uint8,
        TensorElementType::Uint16 => Datatype::Uint16,
        TensorElementType::Uint32 => Datatype::Uint32,
        TensorElementType::Uint64 => Datatype::Uint64,
        TensorElementType::Int8 => Datatype::Int8,
        TensorElementType::Int16 => Datatype::Int16,
        TensorElementType::Int32 => Datatype::Int32,
        TensorElementType::Int64 => Datatype::Int64,
        TensorElementType::Float16 => Datatype::Fp16,
        TensorElementType::Float32 => Datatype::Fp32,
        TensorElementType::Float64 => Datatype::Fp64,
        TensorElementType::String => Datatype::Bytes,
        TensorElementType::Bfloat16 => Datatype::Bf16,
        _ => return None,
    })
}
