//! `ModelInfer`: the way of an inference request through this door.

use alipes_protocol::InferError;
use alipes_protocol::codec::proto::decode_request;
use alipes_protocol::codec::proto::inference::ModelInferRequest;
use bytes::Bytes;

use super::answer::Answer;
use super::message::parse;
use crate::handlers::Service;

/// What this door is called in refusals.
const DOOR: &str = "ModelInfer RPC";

pub(super) async fn model_infer(service: &Service, message: Bytes) -> Result<Answer, InferError> {
    let message: ModelInferRequest = parse(message)?;
    let model = service.lookup_unary(&message.model_name, &message.model_version, DOOR)?;
    let request = decode_request(message)?;
    let response = service.infer(&model, request).await?;
    Answer::inference(&response)
}
