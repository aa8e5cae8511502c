//! What the server and its models say about themselves.

use alipes_protocol::InferError;
use alipes_protocol::codec::proto::health::{HealthCheckResponse, health_check_response::ServingStatus};
use alipes_protocol::codec::proto::inference::model_metadata_response::TensorMetadata;
use alipes_protocol::codec::proto::inference::{
    ModelConfig, ModelConfigRequest, ModelConfigResponse, ModelMetadataRequest, ModelMetadataResponse,
    ModelReadyRequest, ModelReadyResponse, ServerMetadataResponse,
};
use alipes_service::{PortMetadata, Service};
use bytes::Bytes;
use prost::Message;

use super::message::parse;
use super::response::ResponseBody;

/// The readiness of the server, whichever service the caller names: there is only one.
pub(super) async fn health(service: &Service) -> ResponseBody {
    ResponseBody::message(&HealthCheckResponse { status: health_status(service.server_ready().await).into() })
}

pub(super) fn health_status(ready: bool) -> ServingStatus {
    if ready { ServingStatus::Serving } else { ServingStatus::NotServing }
}

pub(super) fn server(service: &Service) -> ResponseBody {
    let metadata = service.server_metadata();
    ResponseBody::message(&ServerMetadataResponse {
        name: metadata.name,
        version: metadata.version.to_owned(),
        extensions: metadata.extensions.iter().map(|&extension| extension.to_owned()).collect(),
    })
}

pub(super) async fn model_ready(service: &Service, message: Bytes) -> Result<ResponseBody, InferError> {
    let request: ModelReadyRequest = parse(message)?;
    let ready = service.model_ready(&request.name, &request.version).await?;
    Ok(ResponseBody::message(&ModelReadyResponse { ready }))
}

pub(super) fn model(service: &Service, message: Bytes) -> Result<ResponseBody, InferError> {
    let request: ModelMetadataRequest = parse(message)?;
    let metadata = service.model_metadata(&request.name, &request.version)?;
    Ok(ResponseBody::message(&ModelMetadataResponse {
        name: metadata.name,
        versions: metadata.versions,
        platform: metadata.platform,
        inputs: metadata.inputs.into_iter().map(tensor).collect(),
        outputs: metadata.outputs.into_iter().map(tensor).collect(),
    }))
}

pub(super) fn model_config(service: &Service, message: Bytes) -> Result<ResponseBody, InferError> {
    let request: ModelConfigRequest = parse(message)?;
    let model = service.lookup(&request.name, &request.version)?;
    let config = ModelConfig::decode(model.config_proto());
    let config = config.map_err(|error| InferError::internal(format!("configuration of the model: {error}")))?;
    Ok(ResponseBody::message(&ModelConfigResponse { config: Some(config) }))
}

fn tensor(port: PortMetadata) -> TensorMetadata {
    TensorMetadata { name: port.name, datatype: port.datatype.to_owned(), shape: port.shape }
}
