//! The state of a live sequence, taken out between its requests and put in elsewhere.

use std::sync::atomic::Ordering;

use alipes_engine::streaming::State;
use alipes_protocol::{Code, CorrelationId, InferError};
use alipes_runtime::model::ModelVersion;
use alipes_runtime::model::driver::SequenceStates;
use alipes_scheduler::streams::{Found, NotPut};
use bytes::Bytes;

use super::{Streaming, reaper};

impl SequenceStates for Streaming {
    fn live(&self) -> usize {
        self.sequences.lock().streams.live()
    }

    fn limit(&self) -> usize {
        self.limit
    }

    fn knows(&self, id: &CorrelationId) -> bool {
        !matches!(self.sequences.lock().streams.find(alipes_clock::now(), id), Found::None)
    }

    fn checkpoint(&self, model: &ModelVersion, id: &CorrelationId) -> Result<Bytes, InferError> {
        let state: State = match self.sequences.lock().streams.find(alipes_clock::now(), id) {
            // Windows are shared, sums are copied: the bytes are written without the lock.
            Found::State(state) => state.clone(),
            Found::Busy => return Err(busy(model, id)),
            Found::None => return Err(unknown(model, id)),
        };
        Ok(self.model.checkpoint(&state))
    }

    fn restore(&self, model: &ModelVersion, id: CorrelationId, bytes: &[u8]) -> Result<(), InferError> {
        let state = self.model.restore(bytes)?;
        if !self.reaping.load(Ordering::Relaxed) {
            reaper::start(self);
        }
        let outcome = self.sequences.lock().streams.put(alipes_clock::now(), id.clone(), state);
        // What was replaced is given back without the lock.
        match outcome.map_err(|(why, _)| why) {
            Ok(_replaced) => {
                self.changed.notify_one();
                Ok(())
            }
            Err(NotPut::Busy) => Err(busy(model, &id)),
            Err(NotPut::Full) => Err(self.full(&model.name)),
        }
    }

    fn end(&self, model: &ModelVersion, id: &CorrelationId) -> Result<(), InferError> {
        let outcome = self.sequences.lock().streams.end(id);
        match outcome {
            Ok(Some(_state)) => Ok(()),
            Ok(None) => Err(unknown(model, id)),
            Err(_busy) => Err(busy(model, id)),
        }
    }
}

fn unknown(model: &ModelVersion, id: &CorrelationId) -> InferError {
    InferError::new(Code::NotFound, format!("model '{}' has no live sequence {}", model.name, named(id)))
}

fn busy(model: &ModelVersion, id: &CorrelationId) -> InferError {
    let text = format!(
        "sequence {} of model '{}' has requests under way; ask again once they are answered",
        named(id),
        model.name
    );
    InferError::new(Code::Unavailable, text)
}

fn named(id: &CorrelationId) -> String {
    match id {
        CorrelationId::Number(id) => id.to_string(),
        CorrelationId::Text(id) => format!("'{id}'"),
    }
}
