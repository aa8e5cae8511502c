//! What there is to serve, and requests to load and unload.

use std::sync::Arc;

use alipes_protocol::codec::proto::inference::model_repository_parameter::ParameterChoice;
use alipes_protocol::codec::proto::inference::repository_index_response::ModelIndex;
use alipes_protocol::codec::proto::inference::{
    ModelRepositoryParameter, RepositoryIndexRequest, RepositoryIndexResponse, RepositoryModelLoadRequest,
    RepositoryModelLoadResponse, RepositoryModelUnloadRequest, RepositoryModelUnloadResponse,
};
use alipes_protocol::limits::READ_AT_ONCE_BYTES;
use alipes_protocol::{Code, InferError, Parameter};
use alipes_request::budget::Charge;
use alipes_service::Service;
use alipes_service::offload::offload;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;

use super::message::parse;
use super::response::ResponseBody;

/// Written on this thread, or beside it where it is long.
pub(super) async fn index(service: &Arc<Service>, message: Bytes) -> Result<ResponseBody, InferError> {
    let request: RepositoryIndexRequest = parse(message)?;
    refuse_named(&request.repository_name)?;
    if !service.has_long_index() {
        return Ok(index_message(service, request.ready));
    }
    let service = Arc::clone(service);
    let written = Box::pin(offload(move || index_message(&service, request.ready))).await;
    written.ok_or_else(|| InferError::internal("the index could not be written"))
}

fn index_message(service: &Service, ready_only: bool) -> ResponseBody {
    let models = service.repository_index(ready_only).into_iter().map(|entry| ModelIndex {
        name: entry.name,
        version: entry.version,
        state: entry.state,
        reason: entry.reason,
    });
    ResponseBody::message(&RepositoryIndexResponse { models: models.collect() })
}

pub(super) async fn load(service: &Service, message: Bytes, mut charge: Charge) -> Result<ResponseBody, InferError> {
    // Files are moved out of the message before it is dropped.
    charge.grow(&service.budget, message.len().saturating_mul(2))?;
    let (model, parameters) = if message.len() <= READ_AT_ONCE_BYTES {
        read_load(message)?
    } else {
        let read = Box::pin(offload(move || read_load(message))).await;
        read.unwrap_or_else(|| Err(InferError::internal("the request message could not be read")))?
    };
    service.load_model(&model, parameters, charge).await?;
    Ok(ResponseBody::message(&RepositoryModelLoadResponse {}))
}

/// The model that a request loads, and its parameters.
fn read_load(message: Bytes) -> Result<(String, Vec<(String, Parameter)>), InferError> {
    let request: RepositoryModelLoadRequest = parse(message)?;
    refuse_named(&request.repository_name)?;
    let parameters = request.parameters.into_iter().map(load_parameter).collect::<Result<_, _>>()?;
    Ok((request.model_name, parameters))
}

pub(super) async fn unload(service: &Service, message: Bytes) -> Result<ResponseBody, InferError> {
    let request: RepositoryModelUnloadRequest = parse(message)?;
    refuse_named(&request.repository_name)?;
    let dependents = match request.parameters.get("unload_dependents") {
        None => false,
        Some(ModelRepositoryParameter { parameter_choice: Some(ParameterChoice::BoolParam(value)) }) => *value,
        Some(_) => {
            return Err(InferError::invalid(
                "invalid value type for 'unload_dependents' parameter, expected bool_param.",
            ));
        }
    };
    service.unload_model(&request.model_name, dependents).await?;
    Ok(ResponseBody::message(&RepositoryModelUnloadResponse {}))
}

/// Repositories have no names here, as in Triton.
fn refuse_named(repository: &str) -> Result<(), InferError> {
    if repository.is_empty() {
        return Ok(());
    }
    Err(InferError::new(Code::Unsupported, "'repository_name' specification is not supported"))
}

/// A parameter as the control plane takes it: files as base64, the form in which HTTP brings them.
fn load_parameter((key, parameter): (String, ModelRepositoryParameter)) -> Result<(String, Parameter), InferError> {
    let value = match (key.as_str(), parameter.parameter_choice) {
        ("config", Some(ParameterChoice::StringParam(config))) => config,
        ("config", _) => return Err(wrong_type(&key, "string_param")),
        (name, Some(ParameterChoice::BytesParam(content))) if is_file(name) => BASE64.encode(content),
        (name, _) if is_file(name) => return Err(wrong_type(&key, "bytes_param")),
        _ => return Err(InferError::invalid(format!("unrecognized load parameter '{key}'."))),
    };
    Ok((key, Parameter::String(value)))
}

fn is_file(key: &str) -> bool {
    key.starts_with("file:")
}

fn wrong_type(key: &str, expected: &str) -> InferError {
    InferError::invalid(format!("invalid value type for load parameter '{key}', expected {expected}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: &str, choice: ParameterChoice) -> Result<Parameter, String> {
        let parameter = ModelRepositoryParameter { parameter_choice: Some(choice) };
        load_parameter((key.to_owned(), parameter)).map(|(_, value)| value).map_err(|error| error.message)
    }

    #[test]
    fn configurations_are_texts_and_files_are_bytes() {
        let text = ParameterChoice::StringParam("{}".to_owned());
        let bytes = ParameterChoice::BytesParam(b"onnx".to_vec());
        assert_eq!(read("config", text.clone()), Ok(Parameter::String("{}".to_owned())));
        assert_eq!(read("file:1/model.onnx", bytes.clone()), Ok(Parameter::String("b25ueA==".to_owned())));
        let error = "invalid value type for load parameter 'config', expected string_param.";
        assert_eq!(read("config", bytes), Err(error.to_owned()));
        let error = "invalid value type for load parameter 'file:x', expected bytes_param.";
        assert_eq!(read("file:x", text.clone()), Err(error.to_owned()));
        assert_eq!(read("color", text), Err("unrecognized load parameter 'color'.".to_owned()));
    }

    #[test]
    fn repositories_have_no_names() {
        assert!(refuse_named("").is_ok());
        assert_eq!(refuse_named("r").unwrap_err().code, Code::Unsupported);
    }
}
