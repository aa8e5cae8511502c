//! The methods, and the way of a call to the one it names.

use std::sync::Arc;

use alipes_protocol::codec::proto::first_raw_tensor;
use alipes_protocol::codec::proto::inference::{ServerLiveResponse, ServerReadyResponse};
use alipes_protocol::{Code, InferError};
use http::header::CONTENT_TYPE;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;

use super::answer::Answer;
use super::message::read_message;
use super::{infer, metadata, repository, statistics, status};
use crate::handlers::Service;

/// A method that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    ModelInfer,
    ServerLive,
    ServerReady,
    ModelReady,
    ServerMetadata,
    ModelMetadata,
    ModelConfig,
    ModelStatistics,
    RepositoryIndex,
    RepositoryModelLoad,
    RepositoryModelUnload,
    HealthCheck,
}

/// Every method that is served, the busiest first.
const SERVED: [(&str, Method); 12] = [
    ("/inference.GRPCInferenceService/ModelInfer", Method::ModelInfer),
    ("/inference.GRPCInferenceService/ServerLive", Method::ServerLive),
    ("/inference.GRPCInferenceService/ServerReady", Method::ServerReady),
    ("/inference.GRPCInferenceService/ModelReady", Method::ModelReady),
    ("/inference.GRPCInferenceService/ServerMetadata", Method::ServerMetadata),
    ("/inference.GRPCInferenceService/ModelMetadata", Method::ModelMetadata),
    ("/inference.GRPCInferenceService/ModelConfig", Method::ModelConfig),
    ("/inference.GRPCInferenceService/ModelStatistics", Method::ModelStatistics),
    ("/inference.GRPCInferenceService/RepositoryIndex", Method::RepositoryIndex),
    ("/inference.GRPCInferenceService/RepositoryModelLoad", Method::RepositoryModelLoad),
    ("/inference.GRPCInferenceService/RepositoryModelUnload", Method::RepositoryModelUnload),
    ("/grpc.health.v1.Health/Check", Method::HealthCheck),
];

/// Every method of the protocol that is not served, and what it would need.
const NOT_OFFERED: [(&str, &str); 9] = [
    ("/inference.GRPCInferenceService/ModelStreamInfer", "inference over a stream"),
    ("/inference.GRPCInferenceService/SystemSharedMemoryStatus", "system shared memory"),
    ("/inference.GRPCInferenceService/SystemSharedMemoryRegister", "system shared memory"),
    ("/inference.GRPCInferenceService/SystemSharedMemoryUnregister", "system shared memory"),
    ("/inference.GRPCInferenceService/CudaSharedMemoryStatus", "CUDA shared memory"),
    ("/inference.GRPCInferenceService/CudaSharedMemoryRegister", "CUDA shared memory"),
    ("/inference.GRPCInferenceService/CudaSharedMemoryUnregister", "CUDA shared memory"),
    ("/inference.GRPCInferenceService/TraceSetting", "tracing"),
    ("/inference.GRPCInferenceService/LogSettings", "changing log settings at run time"),
];

/// Answers a call, whatever it is.
///
/// The head of the request is read before the future begins, so that no call carries it along.
pub(super) fn answer(service: Arc<Service>, request: Request<Incoming>) -> impl Future<Output = Response<Answer>> {
    let method = is_grpc(&request).then(|| find(request.uri().path()));
    let body = request.into_body();
    async move {
        match method {
            None => status::no_grpc(StatusCode::UNSUPPORTED_MEDIA_TYPE),
            Some(Err(error)) => status::refusal(&error),
            Some(Ok(method)) => match call(&service, method, body).await {
                Ok(answer) => answer.into_response(),
                Err(error) => status::refusal(&error),
            },
        }
    }
}

fn is_grpc(request: &Request<Incoming>) -> bool {
    let content_type = request.headers().get(CONTENT_TYPE).map(|value| value.as_bytes());
    let subtype = content_type.and_then(|value| value.strip_prefix(b"application/grpc"));
    subtype.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

fn find(path: &str) -> Result<Method, InferError> {
    if let Some((_, method)) = SERVED.iter().find(|(served, _)| *served == path) {
        return Ok(*method);
    }
    let text = match NOT_OFFERED.iter().find(|(method, _)| *method == path) {
        Some((_, missing)) => format!("method {path} is not offered by this server: {missing} is not available"),
        None => format!("unknown method {path}"),
    };
    Err(InferError::new(Code::Unsupported, text))
}

async fn call(service: &Service, method: Method, body: Incoming) -> Result<Answer, InferError> {
    let tensor = if method == Method::ModelInfer { first_raw_tensor } else { |_: &[u8]| None };
    let message = read_message(body, tensor).await?;
    match method {
        Method::ModelInfer => infer::model_infer(service, message).await,
        Method::ServerLive => Ok(Answer::message(&ServerLiveResponse { live: service.server_live() })),
        Method::ServerReady => Ok(Answer::message(&ServerReadyResponse { ready: service.server_ready() })),
        Method::ModelReady => metadata::model_ready(service, message),
        Method::ServerMetadata => Ok(metadata::server(service)),
        Method::ModelMetadata => metadata::model(service, message),
        Method::ModelConfig => metadata::model_config(service, message),
        Method::ModelStatistics => statistics::model_statistics(service, message),
        Method::RepositoryIndex => repository::index(service, message),
        Method::RepositoryModelLoad => repository::load(service, message).await,
        Method::RepositoryModelUnload => repository::unload(service, message).await,
        Method::HealthCheck => Ok(metadata::health(service)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use alipes_protocol::codec::proto::DESCRIPTORS;
    use prost::Message;
    use prost_types::FileDescriptorSet;

    use super::*;

    /// Paths of the methods that the proto files declare.
    fn declared() -> BTreeSet<String> {
        let files = FileDescriptorSet::decode(DESCRIPTORS).unwrap().file;
        let services = files.iter().flat_map(|file| file.service.iter().map(move |service| (file.package(), service)));
        let methods = services.flat_map(|(package, service)| {
            service.method.iter().map(move |method| format!("/{package}.{}/{}", service.name(), method.name()))
        });
        methods.collect()
    }

    #[test]
    fn each_declared_method_stands_in_one_table() {
        let served = SERVED.iter().map(|(path, _)| path.to_string());
        let listed: Vec<String> = served.chain(NOT_OFFERED.iter().map(|(path, _)| path.to_string())).collect();
        assert_eq!(listed.len(), declared().len());
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), declared());
    }

    #[test]
    fn a_method_that_is_missing_says_what_is_missing() {
        assert_eq!(find("/inference.GRPCInferenceService/ModelInfer"), Ok(Method::ModelInfer));
        let error = find("/inference.GRPCInferenceService/TraceSetting").unwrap_err();
        assert_eq!(error.code, Code::Unsupported);
        assert!(error.message.ends_with("tracing is not available"));
        assert_eq!(find("/x").unwrap_err().message, "unknown method /x");
    }
}
