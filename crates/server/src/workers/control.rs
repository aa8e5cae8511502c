//! What a model may ask of the server besides inference.

use alipes_protocol::InferError;
use serde::Deserialize;

use crate::handlers::Service;

/// Answers a control call with the text of a JSON document.
///
/// # Errors
///
/// The operation is unknown, its arguments do not fit, or it was refused.
pub async fn answer(service: &Service, name: &str, json: &str) -> Result<String, InferError> {
    let _ = (service, json, serde_json::from_str::<Nothing>("{}"));
    Err(InferError::invalid(format!("unknown operation '{name}'")))
}

#[derive(Deserialize)]
struct Nothing {}
