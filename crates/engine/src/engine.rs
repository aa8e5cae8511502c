//! What every engine offers, and what goes in and comes out of one execution.

use alipes_protocol::{Code, Datatype, InferError, Shape};
use bytes::Bytes;

/// An input of one execution: the rows of the whole batch.
#[derive(Clone, Copy, Debug)]
pub struct InputView<'a> {
    /// Position among the inputs that the model's configuration declares.
    pub index: usize,
    /// Element type.
    pub datatype: Datatype,
    /// Sizes as the model sees them: after reshape, with the batch dimension where the model batches.
    pub shape: &'a [i64],
    /// Row-major bytes; `BYTES` elements each behind their 32-bit length.
    pub data: &'a [u8],
}

impl InputView<'_> {
    /// Whether engines may read the elements where they are. No bytes are aligned anywhere.
    pub fn is_aligned(&self) -> bool {
        self.data.is_empty() || self.data.as_ptr().addr().is_multiple_of(self.datatype.size().unwrap_or(1))
    }
}

/// An output of one execution, or one request's rows of it.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputTensor {
    /// Position among the outputs that the model's configuration declares.
    pub index: usize,
    /// Element type.
    pub datatype: Datatype,
    /// Sizes as the model gave them.
    pub shape: Shape,
    /// Row-major bytes; `BYTES` elements each behind their 32-bit length.
    pub data: Bytes,
}

/// One loaded copy of a model that executes batches, one after the other.
pub trait Engine: Send {
    /// Executes the model once.
    ///
    /// `wanted` names the outputs to compute, by their positions in the configuration; they are appended to `outputs`
    /// in that order.
    ///
    /// # Errors
    ///
    /// `Internal` with the engine's own text where the model fails; nothing has been appended then.
    fn run(
        &mut self,
        inputs: &[InputView<'_>],
        wanted: &[usize],
        outputs: &mut Vec<OutputTensor>,
    ) -> Result<(), EngineError>;

    /// Whether sizes tell how long inputs of so many bytes take: no longer than others that are as large in every
    /// direction. Network threads execute nothing else.
    fn sizes_tell(&self, _bytes: usize) -> bool {
        true
    }

    /// Takes the rows of the last execution that could not be computed, ascending: only the requests that brought them
    /// fail. Where outputs have such rows, they hold zeros.
    fn refused(&mut self) -> Vec<RefusedRow> {
        Vec::new()
    }
}

/// A row of a batch that an engine could not compute, while it computed the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRow {
    /// Its number in the batch; 0 where the model does not batch.
    pub row: usize,
    /// Why.
    pub error: EngineError,
}

/// Why a model did not load or an execution failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EngineError {
    /// Stable kind.
    pub code: Code,
    /// What was seen, what was expected and where; for people.
    pub message: String,
}

impl EngineError {
    /// The engine broke, or gave what it must not give.
    pub fn internal(message: impl Into<String>) -> EngineError {
        EngineError { code: Code::Internal, message: message.into() }
    }

    /// The model or a request does not fit its declaration.
    pub fn invalid(message: impl Into<String>) -> EngineError {
        EngineError { code: Code::InvalidArgument, message: message.into() }
    }

    /// What the model needs is not there.
    pub fn unavailable(message: impl Into<String>) -> EngineError {
        EngineError { code: Code::Unavailable, message: message.into() }
    }
}

impl From<EngineError> for InferError {
    fn from(error: EngineError) -> InferError {
        InferError::new(error.code, error.message)
    }
}
