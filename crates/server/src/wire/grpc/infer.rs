//! `ModelInfer`: the way of an inference request through this door.

use alipes_protocol::InferError;
use alipes_protocol::codec::proto::decode_request;
use hyper::body::Incoming;

use super::answer::Answer;
use super::layout::Inference;
use super::message::{parse_inference, read_message};
use crate::handlers::Service;

/// What this door is called in refusals.
const DOOR: &str = "ModelInfer RPC";

pub(super) async fn model_infer(service: &Service, body: Incoming) -> Result<Answer, InferError> {
    let message = parse_inference(read_message(body, Inference(service)).await?)?;
    let model = service.lookup_unary(&message.model_name, &message.model_version, DOOR)?;
    let request = decode_request(message)?;
    let response = service.infer(&model, request).await?;
    Answer::inference(&response)
}
