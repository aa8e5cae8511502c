//! The states of live sequences, for those that move them.

use std::sync::Arc;

use alipes_protocol::{Code, CorrelationId, InferError};
use bytes::Bytes;

use super::Service;
use crate::model::ModelVersion;
use crate::streaming::Streaming;

impl Service {
    /// The state of a live sequence, between its requests.
    ///
    /// # Errors
    ///
    /// As for `lookup`; the model keeps no state here, the sequence is not live, or it is at work.
    pub fn sequence_state(&self, name: &str, version: &str, id: &CorrelationId) -> Result<Bytes, InferError> {
        let model = self.lookup(name, version)?;
        streaming(&model)?.checkpoint(&model, id)
    }

    /// Has a sequence go on from a state.
    ///
    /// # Errors
    ///
    /// The same, or the state is none of such a model.
    pub fn restore_sequence(
        &self,
        name: &str,
        version: &str,
        id: CorrelationId,
        state: &[u8],
    ) -> Result<(), InferError> {
        let model = self.lookup(name, version)?;
        streaming(&model)?.restore(&model, id, state)
    }
}

fn streaming(model: &Arc<ModelVersion>) -> Result<&Streaming, InferError> {
    model.streaming().ok_or_else(|| {
        let text = format!(
            "model '{}' has no states to be taken or put: only snapshotters and averagers of the server have",
            model.name
        );
        InferError::new(Code::Unsupported, text)
    })
}
