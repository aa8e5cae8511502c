//! The states of live sequences, for those that move them.

use std::sync::Arc;

use alipes_protocol::limits::READ_AT_ONCE_BYTES;
use alipes_protocol::{Code, CorrelationId, InferError};
use alipes_runtime::model::ModelVersion;
use alipes_runtime::sequences::Visit;
use bytes::Bytes;

use super::Service;
use super::offload::offload;

impl Service {
    /// The state of a live sequence, between its requests.
    ///
    /// # Errors
    ///
    /// As for `lookup`; the model keeps no state here, the sequence is not live, or it is at work.
    pub async fn sequence_state(&self, name: &str, version: &str, id: CorrelationId) -> Result<Bytes, InferError> {
        let model = self.lookup(name, version)?;
        if let Some(states) = model.driver.sequence_states() {
            return states.checkpoint(&model, &id);
        }
        self.visit(&model, id, Visit::Take).await
    }

    /// Has a sequence go on from a state.
    ///
    /// # Errors
    ///
    /// As for `sequence_state`, or the state is none of such a model, or there is no slot.
    pub async fn restore_sequence(
        &self,
        name: &str,
        version: &str,
        id: CorrelationId,
        state: Bytes,
    ) -> Result<(), InferError> {
        let model = self.lookup(name, version)?;
        let read = if state.len() <= READ_AT_ONCE_BYTES {
            read_state(&model, id.clone(), &state)
        } else {
            let (model, id) = (Arc::clone(&model), id.clone());
            let read = Box::pin(offload(move || read_state(&model, id, &state))).await;
            read.unwrap_or_else(|| Err(InferError::internal("the state could not be read")))
        };
        let Some(visit) = read? else { return Ok(()) };
        self.visit(&model, id, visit).await.map(drop)
    }

    /// Ends a sequence: its state is forgotten.
    ///
    /// # Errors
    ///
    /// As for `sequence_state`.
    pub async fn end_sequence(&self, name: &str, version: &str, id: CorrelationId) -> Result<(), InferError> {
        let model = self.lookup(name, version)?;
        if let Some(states) = model.driver.sequence_states() {
            return states.end(&model, &id);
        }
        self.visit(&model, id, Visit::End).await.map(drop)
    }

    async fn visit(&self, model: &Arc<ModelVersion>, id: CorrelationId, visit: Visit) -> Result<Bytes, InferError> {
        model.visited().ok_or_else(|| without_states(model))?;
        let _inflight = self.inflight.enter()?;
        model.visit(id, visit).await
    }
}

/// Has a sequence go on from a state, where the driver keeps the states of its sequences; else gives the visit that
/// will.
fn read_state(model: &ModelVersion, id: CorrelationId, state: &[u8]) -> Result<Option<Visit>, InferError> {
    if let Some(states) = model.driver.sequence_states() {
        return states.restore(model, id, state).map(|()| None);
    }
    let sequences = model.visited().ok_or_else(|| without_states(model))?;
    Ok(Some(Visit::Put(sequences.states.of_bytes(state)?)))
}

fn without_states(model: &ModelVersion) -> InferError {
    let text = format!(
        "model '{}' has no states to be taken or put: only snapshotters and averagers of the server have, and ONNX models \
         with states in their configuration",
        model.name
    );
    InferError::new(Code::Unsupported, text)
}
