//! What the server and its models say about themselves.

use alipes_protocol::InferError;
use alipes_protocol::codec::proto::health::{HealthCheckResponse, health_check_response::ServingStatus};
use alipes_protocol::codec::proto::inference::model_metadata_response::TensorMetadata;
use alipes_protocol::codec::proto::inference::model_version_policy::{Latest, PolicyChoice};
use alipes_protocol::codec::proto::inference::{
    DataType, ModelConfig, ModelConfigRequest, ModelConfigResponse, ModelInput, ModelMetadataRequest,
    ModelMetadataResponse, ModelOutput, ModelReadyRequest, ModelReadyResponse, ModelTransactionPolicy,
    ModelVersionPolicy, ServerMetadataResponse,
};
use alipes_service::graph::{ConfigPort, GraphConfig, NamedConfig};
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
    let config = match service.model_config(&request.name, &request.version)? {
        NamedConfig::Graph(config) => graph_config(config),
        NamedConfig::Model(model) => {
            let config = ModelConfig::decode(model.config_proto());
            config.map_err(|error| InferError::internal(format!("configuration of the model: {error}")))?
        }
    };
    Ok(ResponseBody::message(&ModelConfigResponse { config: Some(config) }))
}

fn graph_config(config: GraphConfig) -> ModelConfig {
    let newest = PolicyChoice::Latest(Latest { num_versions: 1 });
    ModelConfig {
        name: config.name,
        platform: config.platform.to_owned(),
        version_policy: Some(ModelVersionPolicy { policy_choice: Some(newest) }),
        max_batch_size: i32::try_from(config.max_batch_size).unwrap_or(i32::MAX),
        input: config.input.into_iter().map(input).collect(),
        output: config.output.into_iter().map(output).collect(),
        model_transaction_policy: Some(ModelTransactionPolicy { decoupled: config.model_transaction_policy.decoupled }),
        ..Default::default()
    }
}

fn input(port: ConfigPort) -> ModelInput {
    ModelInput { name: port.name, data_type: data_type(port.data_type), dims: port.dims, ..Default::default() }
}

fn output(port: ConfigPort) -> ModelOutput {
    ModelOutput { name: port.name, data_type: data_type(port.data_type), dims: port.dims, ..Default::default() }
}

fn data_type(name: &str) -> i32 {
    DataType::from_str_name(name).unwrap_or(DataType::TypeInvalid).into()
}

fn tensor(port: PortMetadata) -> TensorMetadata {
    TensorMetadata { name: port.name, datatype: port.datatype.to_owned(), shape: port.shape }
}
