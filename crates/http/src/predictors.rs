//! What the V1 protocol says of models: their names, whether they are ready, and what they do not offer.

use std::sync::Arc;

use alipes_protocol::{Code, InferError};
use alipes_service::Service;
use alipes_service::offload::offload_if;
use alipes_service::predict::VersionStatus;
use hyper::Response;
use serde::Serialize;

use super::response::{self, ResponseBody};

#[derive(Serialize)]
struct NamesDocument {
    models: Vec<String>,
}

/// TensorFlow Serving's document of the one version that was asked for.
#[derive(Serialize)]
struct StatusDocument {
    model_version_status: [VersionStatus; 1],
}

/// The names of the models.
pub async fn names(service: &Arc<Service>) -> Response<ResponseBody> {
    let (is_long, service) = (service.has_long_index(), Arc::clone(service));
    let written = offload_if(is_long, move || response::json(&NamesDocument { models: service.predictor_names() }));
    written.await.unwrap_or_else(|| response::error(&InferError::internal("the names could not be written")))
}

/// Whether a model is ready.
pub async fn status(service: &Service, model: &str) -> Response<ResponseBody> {
    response::json_or(service.predictor_status(model).await)
}

/// The state of a version of a model.
pub async fn version_status(service: &Service, model: &str, version: &str) -> Response<ResponseBody> {
    let status = service.version_status(model, version).await;
    response::json_or(status.map(|status| StatusDocument { model_version_status: [status] }))
}

/// The refusal of a verb that models of this server have not.
pub fn not_offered(service: &Service, model: &str, version: &str, verb: &str) -> Response<ResponseBody> {
    let refusal = service.lookup_predictor(model, version).map(|_| {
        InferError::new(Code::Unsupported, format!("':{verb}' is not offered: ':predict' gives the outputs of a model"))
    });
    response::error(&refusal.unwrap_or_else(|error| error))
}
