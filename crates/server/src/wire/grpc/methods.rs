//! The methods, and the way of a call to the one it names.

use std::sync::Arc;

use alipes_protocol::codec::proto::first_raw_tensor;
use alipes_protocol::codec::proto::inference::{ServerLiveResponse, ServerReadyResponse};
use alipes_protocol::{Code, InferError};
use http::header::CONTENT_TYPE;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::sync::watch;

use super::answer::Answer;
use super::message::read_message;
use super::stream::StreamAnswer;
use super::{infer, metadata, repository, statistics, status};
use crate::handlers::Service;

/// A method that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// Any number of messages, either way.
    ModelStreamInfer,
    /// One message, either way.
    Unary(Unary),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unary {
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
const SERVED: [(&str, Method); 13] = [
    ("/inference.GRPCInferenceService/ModelInfer", Method::Unary(Unary::ModelInfer)),
    ("/inference.GRPCInferenceService/ModelStreamInfer", Method::ModelStreamInfer),
    ("/inference.GRPCInferenceService/ServerLive", Method::Unary(Unary::ServerLive)),
    ("/inference.GRPCInferenceService/ServerReady", Method::Unary(Unary::ServerReady)),
    ("/inference.GRPCInferenceService/ModelReady", Method::Unary(Unary::ModelReady)),
    ("/inference.GRPCInferenceService/ServerMetadata", Method::Unary(Unary::ServerMetadata)),
    ("/inference.GRPCInferenceService/ModelMetadata", Method::Unary(Unary::ModelMetadata)),
    ("/inference.GRPCInferenceService/ModelConfig", Method::Unary(Unary::ModelConfig)),
    ("/inference.GRPCInferenceService/ModelStatistics", Method::Unary(Unary::ModelStatistics)),
    ("/inference.GRPCInferenceService/RepositoryIndex", Method::Unary(Unary::RepositoryIndex)),
    ("/inference.GRPCInferenceService/RepositoryModelLoad", Method::Unary(Unary::RepositoryModelLoad)),
    ("/inference.GRPCInferenceService/RepositoryModelUnload", Method::Unary(Unary::RepositoryModelUnload)),
    ("/grpc.health.v1.Health/Check", Method::Unary(Unary::HealthCheck)),
];

/// Every method of the protocol that is not served, and what it would need.
const NOT_OFFERED: [(&str, &str); 8] = [
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
pub(super) fn answer(
    service: &Arc<Service>,
    draining: &watch::Receiver<bool>,
    request: Request<Incoming>,
) -> impl Future<Output = Response<Answer>> + use<> {
    let start = start(service, draining, request);
    async move {
        match start {
            Start::Over(response) => *response,
            Start::Unary(service, method, body) => match call(&service, method, body).await {
                Ok(answer) => answer.into_response(),
                Err(error) => status::refusal(&error),
            },
        }
    }
}

/// How a call begins.
enum Start {
    /// Its response is settled; a stream's body takes it from there.
    // Boxed, since it is rare: every call carries this value about.
    Over(Box<Response<Answer>>),
    /// It needs its message.
    Unary(Arc<Service>, Unary, Incoming),
}

fn start(service: &Arc<Service>, draining: &watch::Receiver<bool>, request: Request<Incoming>) -> Start {
    let over = |response| Start::Over(Box::new(response));
    if !is_grpc(&request) {
        return over(status::no_grpc(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    match find(request.uri().path()) {
        Err(error) => over(status::refusal(&error)),
        Ok(Method::Unary(method)) => Start::Unary(Arc::clone(service), method, request.into_body()),
        Ok(Method::ModelStreamInfer) => {
            let (head, body) = request.into_parts();
            let stream = StreamAnswer::new(Arc::clone(service), &head.headers, body, draining.clone());
            over(Answer::Stream(Box::new(stream)).into_response())
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

async fn call(service: &Service, method: Unary, body: Incoming) -> Result<Answer, InferError> {
    let tensor = if method == Unary::ModelInfer { first_raw_tensor } else { |_: &[u8]| None };
    let message = read_message(body, tensor).await?;
    match method {
        Unary::ModelInfer => infer::model_infer(service, message).await,
        Unary::ServerLive => Ok(Answer::message(&ServerLiveResponse { live: service.server_live() })),
        Unary::ServerReady => Ok(Answer::message(&ServerReadyResponse { ready: service.server_ready() })),
        Unary::ModelReady => metadata::model_ready(service, message),
        Unary::ServerMetadata => Ok(metadata::server(service)),
        Unary::ModelMetadata => metadata::model(service, message),
        Unary::ModelConfig => metadata::model_config(service, message),
        Unary::ModelStatistics => statistics::model_statistics(service, message),
        Unary::RepositoryIndex => repository::index(service, message),
        Unary::RepositoryModelLoad => repository::load(service, message).await,
        Unary::RepositoryModelUnload => repository::unload(service, message).await,
        Unary::HealthCheck => Ok(metadata::health(service)),
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
        assert_eq!(find("/inference.GRPCInferenceService/ModelInfer"), Ok(Method::Unary(Unary::ModelInfer)));
        let error = find("/inference.GRPCInferenceService/TraceSetting").unwrap_err();
        assert_eq!(error.code, Code::Unsupported);
        assert!(error.message.ends_with("tracing is not available"));
        assert_eq!(find("/x").unwrap_err().message, "unknown method /x");
    }
}
