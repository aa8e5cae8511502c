//! A response on its way out: where its outputs lie, and whether they may leave as the request's own memory.

use std::sync::Arc;

use alipes_link::{OutData, OutOutcome, OutTensor, TensorName};
use alipes_protocol::Parameter;
use pyo3::prelude::*;
use smallvec::SmallVec;

use super::arrays::Memory;
use super::errors::INTERNAL;
use super::reply::Reply;
use super::response::InferenceResponse;
use super::tensor::Tensor;

/// A response, free of the objects that it was made from wherever that is possible.
#[allow(clippy::large_enum_variant, reason = "lives on the stack, for the length of one answer")]
pub enum Draft {
    Response {
        pieces: SmallVec<[Piece; 1]>,
        parameters: Option<Arc<[(String, Parameter)]>>,
    },
    /// `raised` by the model, rather than returned in a response.
    Error {
        code: u8,
        text: String,
        raised: bool,
    },
    /// The end of a request without a response.
    Empty,
    /// The model wants the request to come again.
    Again,
}

/// An output.
pub struct Piece {
    /// Which of the declared outputs.
    index: u16,
    memory: Memory,
    place: Place,
}

enum Place {
    /// In memory of the worker's, which lasts as long as the tensor.
    Ours { _tensor: Py<Tensor> },
    /// In an input of the same request, which lasts until the request is answered. No object is held, so that the
    /// request's lease can end: then nothing can write there any more, and the memory itself can be sent.
    Input { offset: u64, sealed: bool },
}

impl Draft {
    /// What a response holds of what the caller wants. Other outputs are left out without a word, as in Triton.
    pub fn of(py: Python<'_>, response: &InferenceResponse, reply: &Reply) -> PyResult<Draft> {
        if let Some(error) = &response.error {
            let error = error.get();
            let text = error.text.bind(py).to_string_lossy().into_owned();
            return Ok(Draft::Error { code: error.code, text, raised: false });
        }
        let mut pieces: SmallVec<[Piece; 1]> = SmallVec::new();
        for tensor in &response.outputs {
            let index = reply.link.output_index(tensor.get().label(py));
            let Some(index) = index.filter(|index| reply.wants(*index)) else { continue };
            if pieces.iter().all(|piece| piece.index != index) {
                pieces.push(Piece::of(py, index, tensor, reply)?);
            }
        }
        Ok(Draft::Response { pieces, parameters: response.attached() })
    }

    /// The failure of an execution.
    pub fn raised(text: String) -> Draft {
        Draft::Error { code: INTERNAL, text, raised: true }
    }

    /// Nothing can write to the request's memory any more: what lies there need not be copied.
    pub fn seal(&mut self) {
        let Draft::Response { pieces, .. } = self else { return };
        for piece in pieces {
            if let Place::Input { sealed, .. } = &mut piece.place {
                *sealed = true;
            }
        }
    }

    pub fn outcome(&self) -> OutOutcome<'_> {
        match self {
            Draft::Empty => OutOutcome::Empty,
            Draft::Again => OutOutcome::Again,
            Draft::Error { code, text, raised } => OutOutcome::Error { code: *code, text, backend: *raised },
            Draft::Response { pieces, parameters } => OutOutcome::Response {
                outputs: pieces.iter().map(Piece::tensor).collect(),
                parameters: parameters.as_deref().unwrap_or_default(),
            },
        }
    }

    /// Bytes of the tensors.
    pub fn bytes(&self) -> u64 {
        match self {
            Draft::Empty | Draft::Again | Draft::Error { .. } => 0,
            Draft::Response { pieces, .. } => pieces.iter().map(|piece| piece.memory.bytes as u64).sum(),
        }
    }
}

impl Piece {
    fn of(py: Python<'_>, index: u16, tensor: &Py<Tensor>, reply: &Reply) -> PyResult<Piece> {
        let memory = tensor.get().memory(py)?;
        let offset = reply.link.end.memory().offset_of(memory.data.as_ptr(), memory.bytes);
        let offset = offset.filter(|offset| memory.bytes > 0 && reply.holds(*offset, memory.bytes));
        let place = match offset {
            Some(offset) => Place::Input { offset, sealed: false },
            None => Place::Ours { _tensor: tensor.clone_ref(py) },
        };
        Ok(Piece { index, memory, place })
    }

    fn tensor(&self) -> OutTensor<'_> {
        let data = match self.place {
            Place::Input { offset, sealed: true } => OutData::Input { offset, len: self.memory.bytes },
            // SAFETY: the keeper, or the request that is not yet answered, keeps the memory; that another thread of the
            // model's may write to it meanwhile is the model's own affair, as with any array.
            _ => OutData::Bytes(unsafe { std::slice::from_raw_parts(self.memory.data.as_ptr(), self.memory.bytes) }),
        };
        let (datatype, shape) = (self.memory.datatype, self.memory.shape.clone());
        OutTensor { name: TensorName::Index(self.index), datatype, shape, data }
    }
}
