//! Server reflection: a client asks which services there are and what their messages look like.

use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use alipes_net::connection::RequestBody;
use alipes_net::phase::{Phase, Shutdown};
use alipes_protocol::codec::proto::DESCRIPTORS;
use alipes_protocol::codec::proto::reflection::server_reflection_request::MessageRequest;
use alipes_protocol::codec::proto::reflection::server_reflection_response::MessageResponse;
use alipes_protocol::codec::proto::reflection::{
    ErrorResponse, ExtensionNumberResponse, FileDescriptorResponse, ListServiceResponse, ServerReflectionRequest,
    ServerReflectionResponse, ServiceResponse,
};
use alipes_protocol::{Code, InferError};
use alipes_request::budget::Budget;
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame};
use prost::Message;
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet};

use super::layout::Plain;
use super::message::{self, Messages, Receiving, parse, within_message};
use super::response::framed;
use super::status;

/// The index of descriptors, built at the first request.
static INDEX: LazyLock<Index> = LazyLock::new(Index::new);

/// The files of `proto/`, and what is declared in each.
struct Index {
    files: Vec<Vec<u8>>,
    by_name: HashMap<String, usize>,
    by_symbol: HashMap<String, usize>,
    messages: BTreeSet<String>,
    services: Vec<String>,
}

impl Index {
    fn new() -> Index {
        let mut index = Index {
            files: Vec::new(),
            by_name: HashMap::new(),
            by_symbol: HashMap::new(),
            messages: BTreeSet::new(),
            services: Vec::new(),
        };
        // What the build wrote can be read.
        let files = FileDescriptorSet::decode(DESCRIPTORS).unwrap_or_default().file;
        files.iter().for_each(|file| index.add(file));
        index
    }

    fn add(&mut self, file: &FileDescriptorProto) {
        let package = file.package();
        self.by_name.insert(file.name().to_owned(), self.files.len());
        file.message_type.iter().for_each(|message| self.add_message(package, message));
        file.enum_type.iter().for_each(|one| self.add_enum(package, one));
        for service in &file.service {
            let name = format!("{package}.{}", service.name());
            service.method.iter().for_each(|method| self.add_symbol(format!("{name}.{}", method.name())));
            self.services.push(name.clone());
            self.add_symbol(name);
        }
        self.files.push(file.encode_to_vec());
    }

    fn add_message(&mut self, scope: &str, message: &DescriptorProto) {
        let name = format!("{scope}.{}", message.name());
        message.nested_type.iter().for_each(|nested| self.add_message(&name, nested));
        message.enum_type.iter().for_each(|one| self.add_enum(&name, one));
        message.field.iter().for_each(|field| self.add_symbol(format!("{name}.{}", field.name())));
        self.messages.insert(name.clone());
        self.add_symbol(name);
    }

    fn add_enum(&mut self, scope: &str, one: &EnumDescriptorProto) {
        self.add_symbol(format!("{scope}.{}", one.name()));
        // The values of an enum are declared beside it, not in it.
        one.value.iter().for_each(|value| self.add_symbol(format!("{scope}.{}", value.name())));
    }

    fn add_symbol(&mut self, name: String) {
        self.by_symbol.insert(name, self.files.len());
    }

    fn answer(&self, question: &MessageRequest) -> Result<MessageResponse, InferError> {
        match question {
            MessageRequest::ListServices(_) => {
                let service = self.services.iter().map(|name| ServiceResponse { name: name.clone() }).collect();
                Ok(MessageResponse::ListServicesResponse(ListServiceResponse { service }))
            }
            MessageRequest::FileByFilename(name) => self.file(self.by_name.get(name), "file", name),
            MessageRequest::FileContainingSymbol(name) => self.file(self.by_symbol.get(name), "symbol", name),
            MessageRequest::FileContainingExtension(extension) => {
                Err(unknown("extension", &format!("{} of {}", extension.extension_number, extension.containing_type)))
            }
            MessageRequest::AllExtensionNumbersOfType(name) if self.messages.contains(name) => {
                let numbers = ExtensionNumberResponse { base_type_name: name.clone(), extension_number: Vec::new() };
                Ok(MessageResponse::AllExtensionNumbersResponse(numbers))
            }
            MessageRequest::AllExtensionNumbersOfType(name) => Err(unknown("message", name)),
        }
    }

    fn file(&self, found: Option<&usize>, kind: &str, name: &str) -> Result<MessageResponse, InferError> {
        let &file = found.ok_or_else(|| unknown(kind, name))?;
        let file_descriptor_proto = vec![self.files[file].clone()];
        Ok(MessageResponse::FileDescriptorResponse(FileDescriptorResponse { file_descriptor_proto }))
    }
}

fn unknown(kind: &str, name: &str) -> InferError {
    InferError::new(Code::NotFound, format!("there is no {kind} '{name}'"))
}

fn respond(request: ServerReflectionRequest) -> ServerReflectionResponse {
    let nothing = || Err(InferError::invalid("the request asks for nothing"));
    let outcome = request.message_request.as_ref().map_or_else(nothing, |question| INDEX.answer(question));
    let message_response = outcome.unwrap_or_else(|error| {
        let error_code = error.code.row().grpc_code;
        MessageResponse::ErrorResponse(ErrorResponse { error_code, error_message: error.message })
    });
    ServerReflectionResponse {
        valid_host: request.host.clone(),
        original_request: Some(request),
        message_response: Some(message_response),
    }
}

/// The body of a reflection stream: one response to each request, in order.
pub(super) struct ReflectionBody {
    incoming: RequestBody,
    messages: Messages<Plain>,
    receiving: Receiving,
    /// A compressed request that is being expanded.
    expanding: Option<Expanding>,
    draining: Pin<Box<dyn Future<Output = ()> + Send>>,
    phase: ReflectionPhase,
}

type Expanding = Pin<Box<dyn Future<Output = Result<message::Message, InferError>> + Send>>;

enum ReflectionPhase {
    Open,
    Ending(HeaderMap),
    Over,
}

impl ReflectionBody {
    pub(super) fn new(
        budget: &Arc<Budget>,
        receiving: Receiving,
        incoming: RequestBody,
        draining: Shutdown,
    ) -> ReflectionBody {
        ReflectionBody {
            incoming,
            messages: Messages::new(Plain(Arc::clone(budget)), receiving),
            receiving,
            expanding: None,
            draining: Box::pin(draining.reached(Phase::Draining)),
            phase: ReflectionPhase::Open,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, ReflectionPhase::Over)
    }

    pub(super) fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        loop {
            match mem::replace(&mut self.phase, ReflectionPhase::Over) {
                ReflectionPhase::Over => return Poll::Ready(None),
                ReflectionPhase::Ending(trailers) => return Poll::Ready(Some(Frame::trailers(trailers))),
                ReflectionPhase::Open => self.phase = ReflectionPhase::Open,
            }
            match self.poll_request(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(Some(request))) => return Poll::Ready(Some(Frame::data(framed(&respond(request))))),
                Poll::Ready(Ok(None)) => self.phase = ReflectionPhase::Ending(status::success()),
                Poll::Ready(Err(error)) => self.phase = ReflectionPhase::Ending(status::failure(&error)),
            }
        }
    }

    /// The next request; none once the client has said that there are no more.
    fn poll_request(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<ServerReflectionRequest>, InferError>> {
        loop {
            if let Some(expanding) = &mut self.expanding {
                let Poll::Ready(expanded) = expanding.as_mut().poll(context) else { return Poll::Pending };
                self.expanding = None;
                return Poll::Ready(expanded.and_then(|message| parse(message.bytes)).map(Some));
            }
            match self.messages.next() {
                Err(error) => return Poll::Ready(Err(error)),
                Ok(Some(message)) => {
                    self.expanding = Some(Box::pin(message.expanded(self.receiving, self.messages.budget())));
                }
                Ok(None) => match Pin::new(&mut self.incoming).poll_frame(context) {
                    Poll::Ready(Some(Ok(frame))) => {
                        frame.into_data().into_iter().for_each(|data| self.messages.push(data));
                    }
                    Poll::Ready(None) if self.messages.is_between() => return Poll::Ready(Ok(None)),
                    Poll::Ready(_) => return Poll::Ready(Err(within_message())),
                    Poll::Pending if self.draining.as_mut().poll(context).is_ready() => {
                        return Poll::Ready(Err(status::shutting_down()));
                    }
                    Poll::Pending => return Poll::Pending,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(question: MessageRequest) -> MessageResponse {
        let request = ServerReflectionRequest { host: "here".to_owned(), message_request: Some(question) };
        let response = respond(request.clone());
        assert_eq!((response.valid_host.as_str(), response.original_request), ("here", Some(request)));
        response.message_response.unwrap()
    }

    fn file(question: MessageRequest) -> String {
        match ask(question) {
            MessageResponse::FileDescriptorResponse(files) => {
                FileDescriptorProto::decode(files.file_descriptor_proto[0].as_slice()).unwrap().name().to_owned()
            }
            other => panic!("no file: {other:?}"),
        }
    }

    #[test]
    fn every_service_is_listed() {
        let MessageResponse::ListServicesResponse(list) = ask(MessageRequest::ListServices(String::new())) else {
            panic!("no list")
        };
        let names: BTreeSet<&str> = list.service.iter().map(|service| service.name.as_str()).collect();
        assert_eq!(
            names,
            BTreeSet::from([
                "inference.GRPCInferenceService",
                "grpc.health.v1.Health",
                "grpc.reflection.v1.ServerReflection",
                "grpc.reflection.v1alpha.ServerReflection",
            ])
        );
    }

    #[test]
    fn a_file_is_found_by_its_name_and_by_what_is_in_it() {
        let symbol = |name: &str| file(MessageRequest::FileContainingSymbol(name.to_owned()));
        assert_eq!(file(MessageRequest::FileByFilename("model_config.proto".to_owned())), "model_config.proto");
        for name in [
            "inference.GRPCInferenceService",
            "inference.GRPCInferenceService.ModelInfer",
            "inference.ModelInferRequest",
            "inference.ModelInferRequest.InferInputTensor",
            "inference.ModelInferRequest.model_name",
        ] {
            assert_eq!(symbol(name), "inference.proto");
        }
        assert_eq!(symbol("grpc.health.v1.HealthCheckResponse.ServingStatus"), "health.proto");
        assert_eq!(symbol("inference.TYPE_FP32"), "model_config.proto");
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        for question in [
            MessageRequest::FileByFilename("/etc/passwd".to_owned()),
            MessageRequest::FileContainingSymbol("inference.Nothing".to_owned()),
            MessageRequest::AllExtensionNumbersOfType("inference.Nothing".to_owned()),
            MessageRequest::FileContainingExtension(Default::default()),
        ] {
            let MessageResponse::ErrorResponse(error) = ask(question) else { panic!("found") };
            assert_eq!(error.error_code, 5);
        }
        let nothing = respond(ServerReflectionRequest::default()).message_response;
        assert!(matches!(nothing, Some(MessageResponse::ErrorResponse(error)) if error.error_code == 3));
    }

    #[test]
    fn messages_have_no_extensions() {
        let question = MessageRequest::AllExtensionNumbersOfType("inference.ModelInferRequest".to_owned());
        let MessageResponse::AllExtensionNumbersResponse(numbers) = ask(question) else { panic!("no numbers") };
        assert_eq!(numbers.extension_number, Vec::<i32>::new());
    }
}
