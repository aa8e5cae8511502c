//! The way of one inference request.

use std::sync::Arc;
use std::time::Instant;

use alipes_protocol::{InferError, InferRequest, InferResponse};

use super::Service;
use crate::model::ModelVersion;

impl Service {
    /// Runs a request and gives the model's answer.
    ///
    /// Dropping the future withdraws the request: if it still waits, it never reaches the model.
    ///
    /// # Errors
    ///
    /// What the request's checks refuse, `Unavailable` while the server drains, and what the model fails with.
    pub async fn infer(&self, model: &Arc<ModelVersion>, request: InferRequest) -> Result<InferResponse, InferError> {
        let arrived = Instant::now();
        let _inflight = self.inflight.enter()?;
        let id = request.id.clone();
        let answer = model.submit(request, arrived)?;
        let outputs = answer.await.unwrap_or_else(|_| {
            Err(InferError::internal(format!("model '{}' dropped the request without an answer", model.name)))
        })?;
        Ok(InferResponse {
            id,
            model_name: Arc::clone(&model.name),
            model_version: model.spec.version,
            parameters: Vec::new(),
            outputs,
        })
    }
}
