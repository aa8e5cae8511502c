//! The end of a request on its caller's side.

use std::borrow::Borrow;
use std::sync::Arc;

use alipes_runtime::model::ModelVersion;

/// Dropped before the last response, it removes the request from the model's queue at once. It has to be dropped after
/// what receives the responses, whose end marks the request as cancelled.
pub(super) struct CallerEnd<M: Borrow<Arc<ModelVersion>>> {
    pub(super) model: M,
    pub(super) is_answered: bool,
}

impl<M: Borrow<Arc<ModelVersion>>> CallerEnd<M> {
    /// The end of a request to a model, which has no response yet.
    pub(super) fn of(model: M) -> CallerEnd<M> {
        CallerEnd { model, is_answered: false }
    }
}

impl<M: Borrow<Arc<ModelVersion>>> Drop for CallerEnd<M> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.model.borrow().caller_left();
        }
    }
}
