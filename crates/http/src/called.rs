//! Models that take requests of the protocols as calls.

use std::sync::Arc;

use alipes_service::{ModelVersion, Service};
use hyper::HeaderMap;

use super::infer::header;
use super::route::Route;

/// The model of a request of V1 or V2, where it takes such requests as calls.
pub fn called_model(service: &Service, route: &Route<'_>, headers: &HeaderMap) -> Option<Arc<ModelVersion>> {
    let find = |model: &str, version: &str| service.lookup_divided(model, version, |name| header(headers, name)).ok();
    match route {
        // Most servers have no such model, and nobody looks for one there.
        Route::Infer { model, version } if service.registry.takes_whole() => {
            find(model, version).filter(|model| model.is_whole())
        }
        Route::Predict { model, version } => find(model, version).filter(|model| model.predicts_by_call()),
        Route::ExplainPrediction { model, version } => find(model, version).filter(|model| model.explains()),
        _ => None,
    }
}
