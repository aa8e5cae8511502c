//! `ModelInfer`: the way of an inference request through this door.

use alipes_protocol::InferError;
use alipes_protocol::codec::proto::inference::ModelInferRequest;
use alipes_protocol::codec::proto::{decode_request, encode_response};
use bytes::Bytes;

use super::answer::Answer;
use super::message::parse;
use crate::handlers::Service;

pub(super) async fn model_infer(service: &Service, message: Bytes) -> Result<Answer, InferError> {
    let message: ModelInferRequest = parse(message)?;
    let model = service.lookup(&message.model_name, &message.model_version)?;
    let request = decode_request(message)?;
    let response = service.infer(&model, request).await?;
    Answer::inference(encode_response(response))
}
