//! The methods, and the way of a call to the one it names.

use std::pin::pin;
use std::sync::Arc;

use alipes_net::connection::RequestBody;
use alipes_net::phase::Shutdown;
use alipes_net::restricted::Group;
use alipes_protocol::codec::proto::check_fields;
use alipes_protocol::codec::proto::inference::{ServerLiveResponse, ServerReadyResponse};
use alipes_protocol::limits::GRPC_MAX_CONTROL_BYTES;
use alipes_protocol::{Code, InferError};
use alipes_service::Service;
use alipes_stats::turn::note_request;
use http::header::CONTENT_TYPE;
use http::{Request, Response, StatusCode};

use super::compression::{GRPC_ACCEPT_ENCODING, OFFERED};
use super::head::Head;
use super::infer::{Caller, Forwarded};
use super::layout::Plain;
use super::message::read_message;
use super::reflection::ReflectionBody;
use super::response::ResponseBody;
use super::stream::StreamBody;
use super::tracing::{self, Entry};
use super::watch::WatchBody;
use super::{deadline, infer, logging, metadata, repository, shared_memory, statistics, status};

/// A method that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    ModelInfer,
    ModelStreamInfer,
    HealthWatch,
    Reflection,
    Control(Control),
}

/// A method that answers one message without tensors with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Control {
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
    RegionStatus,
    RegionRegister,
    RegionUnregister,
    CudaRegionStatus,
    CudaRegionRegister,
    CudaRegionUnregister,
    LogSettings,
    TraceSetting,
    HealthCheck,
}

impl Method {
    /// The group of the method; reflection is in none.
    fn group(self) -> Option<Group> {
        match self {
            Method::ModelInfer | Method::ModelStreamInfer => Some(Group::Inference),
            Method::HealthWatch => Some(Group::Health),
            Method::Reflection => None,
            Method::Control(control) => Some(control.group()),
        }
    }
}

impl Control {
    fn group(self) -> Group {
        match self {
            Control::ServerLive | Control::ServerReady | Control::ModelReady | Control::HealthCheck => Group::Health,
            Control::ServerMetadata | Control::ModelMetadata => Group::Metadata,
            Control::ModelConfig => Group::ModelConfig,
            Control::ModelStatistics => Group::Statistics,
            Control::RepositoryIndex => Group::ModelRepository,
            Control::RepositoryModelLoad | Control::RepositoryModelUnload => Group::ModelControl,
            Control::RegionStatus
            | Control::RegionRegister
            | Control::RegionUnregister
            | Control::CudaRegionStatus
            | Control::CudaRegionRegister
            | Control::CudaRegionUnregister => Group::SharedMemory,
            Control::LogSettings => Group::Logging,
            Control::TraceSetting => Group::Trace,
        }
    }
}

/// Every method that is served, the busiest first.
const SERVED: [(&str, Method); 24] = [
    ("/inference.GRPCInferenceService/ModelInfer", Method::ModelInfer),
    ("/inference.GRPCInferenceService/ModelStreamInfer", Method::ModelStreamInfer),
    ("/inference.GRPCInferenceService/ServerLive", Method::Control(Control::ServerLive)),
    ("/inference.GRPCInferenceService/ServerReady", Method::Control(Control::ServerReady)),
    ("/inference.GRPCInferenceService/ModelReady", Method::Control(Control::ModelReady)),
    ("/inference.GRPCInferenceService/ServerMetadata", Method::Control(Control::ServerMetadata)),
    ("/inference.GRPCInferenceService/ModelMetadata", Method::Control(Control::ModelMetadata)),
    ("/inference.GRPCInferenceService/ModelConfig", Method::Control(Control::ModelConfig)),
    ("/inference.GRPCInferenceService/ModelStatistics", Method::Control(Control::ModelStatistics)),
    ("/inference.GRPCInferenceService/RepositoryIndex", Method::Control(Control::RepositoryIndex)),
    ("/inference.GRPCInferenceService/RepositoryModelLoad", Method::Control(Control::RepositoryModelLoad)),
    ("/inference.GRPCInferenceService/RepositoryModelUnload", Method::Control(Control::RepositoryModelUnload)),
    ("/inference.GRPCInferenceService/SystemSharedMemoryStatus", Method::Control(Control::RegionStatus)),
    ("/inference.GRPCInferenceService/SystemSharedMemoryRegister", Method::Control(Control::RegionRegister)),
    ("/inference.GRPCInferenceService/SystemSharedMemoryUnregister", Method::Control(Control::RegionUnregister)),
    ("/inference.GRPCInferenceService/CudaSharedMemoryStatus", Method::Control(Control::CudaRegionStatus)),
    ("/inference.GRPCInferenceService/CudaSharedMemoryRegister", Method::Control(Control::CudaRegionRegister)),
    ("/inference.GRPCInferenceService/CudaSharedMemoryUnregister", Method::Control(Control::CudaRegionUnregister)),
    ("/inference.GRPCInferenceService/LogSettings", Method::Control(Control::LogSettings)),
    ("/inference.GRPCInferenceService/TraceSetting", Method::Control(Control::TraceSetting)),
    ("/grpc.health.v1.Health/Check", Method::Control(Control::HealthCheck)),
    ("/grpc.health.v1.Health/Watch", Method::HealthWatch),
    ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Method::Reflection),
    ("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Method::Reflection),
];

/// A call whose head was read, so that it need not be carried along.
pub(super) struct BegunCall {
    name: &'static str,
    start: Start,
}

/// Begins a call, whatever it is.
pub(super) fn begin(
    service: &Arc<Service>,
    draining: &Shutdown,
    request: Request<RequestBody>,
    caller: Caller,
) -> BegunCall {
    let found = find(request.uri().path());
    let name = found.as_ref().map_or("a refused call", |(path, _)| path);
    note_request(name, "");
    BegunCall { name, start: start(service, draining, request, found.map(|(_, method)| *method), caller) }
}

impl BegunCall {
    /// Answers it.
    pub(super) async fn answer(self) -> Response<ResponseBody> {
        // Once more, since another task goes on from here.
        note_request(self.name, "");
        match self.start {
            Start::Over(response) => *response,
            Start::Infer(service, head, forwarded, entry, caller, body) => {
                respond(match head.deadline {
                    None => pin!(infer::model_infer(&service, head, forwarded, entry, caller, body)).await,
                    // Boxed, so that calls without a deadline do not carry its timer along.
                    Some(deadline) => {
                        let answer = infer::model_infer(&service, head, forwarded, entry, caller, body);
                        Box::pin(deadline::within(deadline, answer)).await
                    }
                })
            }
            Start::Control(service, method, head, body) => respond(match head.deadline {
                None => control(&service, method, head, body).await,
                Some(deadline) => Box::pin(deadline::within(deadline, control(&service, method, head, body))).await,
            }),
            Start::Watch(service, draining, head, body) => respond(
                match read_message(
                    body,
                    Plain(Arc::clone(&service.budget)),
                    head.receiving.at_most(GRPC_MAX_CONTROL_BYTES),
                )
                .await
                {
                    Ok(_) => Ok(ResponseBody::Watch(Box::new(WatchBody::new(service, draining)))),
                    Err(error) => Err(error),
                },
            ),
        }
    }
}

fn respond(outcome: Result<ResponseBody, InferError>) -> Response<ResponseBody> {
    outcome.map_or_else(|error| status::refusal(&error), ResponseBody::into_response)
}

/// How a call begins.
enum Start {
    /// Its response is settled; a stream's body takes it from there.
    // Boxed, since it is rare: every call carries this value about.
    Over(Box<Response<ResponseBody>>),
    /// They need their message.
    Infer(Arc<Service>, Head, Forwarded, Option<Box<Entry>>, Caller, RequestBody),
    Control(Arc<Service>, Control, Head, RequestBody),
    Watch(Arc<Service>, Shutdown, Head, RequestBody),
}

fn start(
    service: &Arc<Service>,
    draining: &Shutdown,
    request: Request<RequestBody>,
    method: Result<Method, InferError>,
    caller: Caller,
) -> Start {
    let over = |response| Start::Over(Box::new(response));
    if !is_grpc(&request) {
        return over(status::no_grpc(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    let head = match Head::of(request.headers(), &service.config) {
        Ok(head) => head,
        Err(error) => return over(not_understood(&error)),
    };
    match method {
        Err(error) => over(status::refusal(&error)),
        Ok(Method::ModelInfer) => match infer::forwarded(service, request.headers()) {
            Ok(forwarded) => {
                let entry = Entry::new(service, request.headers());
                let is_read = service.registry.takes_whole() || service.context.traffic.is_sticky();
                let metadata = is_read.then(|| Box::new(request.headers().clone()));
                let caller = Caller { logged: service.payloads.draw(request.headers()), metadata, ..caller };
                Start::Infer(Arc::clone(service), head, forwarded, entry, caller, request.into_body())
            }
            Err(error) => over(status::refusal(&error)),
        },
        Ok(Method::Control(method)) => Start::Control(Arc::clone(service), method, head, request.into_body()),
        Ok(Method::HealthWatch) => Start::Watch(Arc::clone(service), draining.clone(), head, request.into_body()),
        Ok(Method::ModelStreamInfer) => {
            let (parts, body) = request.into_parts();
            match StreamBody::new(
                Arc::clone(service),
                &parts.headers,
                head,
                caller,
                body.without_stall_timeout(),
                draining.clone(),
            ) {
                Ok(stream) => over(ResponseBody::Stream(Box::new(stream)).into_response()),
                Err(error) => over(status::refusal(&error)),
            }
        }
        Ok(Method::Reflection) => {
            let reflection = ReflectionBody::new(
                &service.budget,
                head.receiving,
                request.into_body().without_stall_timeout(),
                draining.clone(),
            );
            over(ResponseBody::Reflection(Box::new(reflection)).into_response())
        }
    }
}

/// A refusal that says what would be understood.
fn not_understood(error: &InferError) -> Response<ResponseBody> {
    let mut response = status::refusal(error);
    response.headers_mut().insert(GRPC_ACCEPT_ENCODING, OFFERED);
    response
}

fn is_grpc(request: &Request<RequestBody>) -> bool {
    let content_type = request.headers().get(CONTENT_TYPE).map(|value| value.as_bytes());
    let subtype = content_type.and_then(|value| value.strip_prefix(b"application/grpc"));
    subtype.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

/// The method with this path, and the path.
fn find(path: &str) -> Result<&'static (&'static str, Method), InferError> {
    let found = SERVED.iter().find(|(served, _)| *served == path);
    found.ok_or_else(|| InferError::new(Code::Unsupported, format!("unknown method {path}")))
}

/// The group of the method with this path.
pub(super) fn group(path: &str) -> Option<Group> {
    find(path).map_or_else(|_| unknown_group(path), |(_, method)| method.group())
}

/// The group of a method that is not served: that of the methods beside it, so that a restricted listener does not
/// reveal which methods exist.
fn unknown_group(path: &str) -> Option<Group> {
    if path.starts_with("/grpc.health.v1.Health/") {
        return Some(Group::Health);
    }
    let method = path.strip_prefix("/inference.GRPCInferenceService/")?;
    if method.starts_with("Repository") {
        return Some(Group::ModelControl);
    }
    method.contains("SharedMemory").then_some(Group::SharedMemory)
}

async fn control(
    service: &Arc<Service>,
    method: Control,
    head: Head,
    body: RequestBody,
) -> Result<ResponseBody, InferError> {
    let receiving = match method {
        // It brings files.
        Control::RepositoryModelLoad => head.receiving,
        _ => head.receiving.at_most(GRPC_MAX_CONTROL_BYTES),
    };
    let message = read_message(body, Plain(Arc::clone(&service.budget)), receiving).await?;
    let (message, charge) = message.into_parts();
    check_fields(&message)?;
    match method {
        Control::ServerLive => Ok(ResponseBody::message(&ServerLiveResponse { live: service.server_live() })),
        Control::ServerReady => Ok(ResponseBody::message(&ServerReadyResponse { ready: service.server_ready().await })),
        Control::ModelReady => metadata::model_ready(service, message).await,
        Control::ServerMetadata => Ok(metadata::server(service)),
        Control::ModelMetadata => metadata::model(service, message),
        Control::ModelConfig => metadata::model_config(service, message),
        Control::ModelStatistics => statistics::model_statistics(service, message).await,
        Control::RepositoryIndex => repository::index(service, message).await,
        Control::RepositoryModelLoad => repository::load(service, message, charge).await,
        Control::RepositoryModelUnload => repository::unload(service, message).await,
        Control::LogSettings => logging::log_settings(service, message).await,
        Control::TraceSetting => tracing::trace_setting(service, message),
        Control::HealthCheck => Ok(metadata::health(service).await),
        Control::RegionStatus => shared_memory::status(service, message),
        Control::RegionRegister => shared_memory::register(service, message),
        Control::RegionUnregister => shared_memory::unregister(service, message),
        Control::CudaRegionStatus => shared_memory::cuda_status(service, message),
        Control::CudaRegionRegister => shared_memory::cuda_register(service, message).await,
        Control::CudaRegionUnregister => shared_memory::cuda_unregister(service, message).await,
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
    fn each_declared_method_is_served() {
        let listed: Vec<String> = SERVED.iter().map(|(path, _)| path.to_string()).collect();
        assert_eq!(listed.len(), declared().len());
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), declared());
    }

    #[test]
    fn the_methods_of_the_protocol_cover_every_group() {
        let methods = SERVED.iter().filter(|(path, _)| path.starts_with("/inference."));
        let groups: BTreeSet<Group> =
            methods.map(|(path, _)| group(path).unwrap_or_else(|| panic!("{path} is in no group"))).collect();
        let elsewhere = BTreeSet::from([Group::Endpoint, Group::Openapi, Group::Metrics]);
        assert_eq!(groups, &BTreeSet::from(Group::ALL) - &elsewhere);
    }

    #[test]
    fn a_method_beside_others_is_in_their_group() {
        let known = [
            ("/inference.GRPCInferenceService/ModelStreamInfer", Some(Group::Inference)),
            ("/inference.GRPCInferenceService/RepositoryUnheardOf", Some(Group::ModelControl)),
            ("/inference.GRPCInferenceService/GpuSharedMemoryStatus", Some(Group::SharedMemory)),
            ("/inference.GRPCInferenceService/UnheardOf", None),
            ("/grpc.health.v1.Health/Check", Some(Group::Health)),
            ("/grpc.health.v1.Health/Watch", Some(Group::Health)),
            ("/grpc.health.v1.Health/UnheardOf", Some(Group::Health)),
            ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", None),
        ];
        for (path, expected) in known {
            assert_eq!(group(path), expected, "{path}");
        }
    }

    #[test]
    fn a_method_that_is_unknown_is_named() {
        let found = find("/inference.GRPCInferenceService/ModelInfer");
        assert_eq!(found.map(|(_, method)| *method), Ok(Method::ModelInfer));
        let error = find("/x").unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (Code::Unsupported, "unknown method /x"));
    }
}
