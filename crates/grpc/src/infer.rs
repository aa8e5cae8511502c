//! `ModelInfer`: one inference request over gRPC.

use std::pin::pin;
use std::sync::Arc;

use alipes_net::connection::RequestBody;
use alipes_protocol::codec::proto::inference::ModelInferRequest;
use alipes_protocol::{InferError, InferRequest, Parameter};
use alipes_service::Service;
use alipes_service::graph::TensorGraph;
use alipes_service::request_id::RequestId;
use alipes_stats::access::AccessRecord;
use alipes_stats::turn::note_request;
use http::HeaderMap;

use super::head::{Head, entry_of};
use super::layout::Inference;
use super::message::{parse_inference, read_message};
use super::response::ResponseBody;
use super::tracing::Entry;
use super::whole::{self, METHOD};

/// The name of the endpoint in refusals.
const ENDPOINT: &str = "ModelInfer RPC";

/// Metadata of a call that the model is to see.
pub(super) type Forwarded = Vec<(String, Parameter)>;

/// What a call brings beside its message.
#[derive(Default)]
pub(super) struct Caller {
    /// The id of its metadata.
    pub(super) request_id: Option<RequestId>,
    /// Its record, where the log is verbose.
    pub(super) record: Option<Arc<AccessRecord>>,
    /// What the payload log is to have of its metadata, where the call is logged.
    pub(super) logged: Option<Arc<[(String, String)]>>,
    /// All of its metadata, where a model is served that takes it, or requests are divided by it.
    pub(super) metadata: Option<Box<HeaderMap>>,
}

impl Caller {
    /// The id of the metadata; empty where it brought none.
    fn request_id(&self) -> &str {
        self.request_id.as_ref().map_or("", RequestId::as_str)
    }

    /// The call is about this model.
    pub(super) fn names(&self, model: &str, id: &str) {
        if let Some(record) = &self.record {
            record.names(model, id);
        }
    }
}

/// # Errors
///
/// Metadata under a name that belongs to the protocol.
pub(super) fn forwarded(service: &Service, metadata: &HeaderMap) -> Result<Forwarded, InferError> {
    let Some(forwarding) = &service.config.grpc_header_forward_pattern else { return Ok(Vec::new()) };
    let all = metadata.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    forwarding.parameters(all, service.config.triton_release, |name, _| name.to_owned())
}

pub(super) async fn model_infer(
    service: &Service,
    head: Head,
    forwarded: Forwarded,
    entry: Option<Box<Entry>>,
    caller: Caller,
    body: RequestBody,
) -> Result<ResponseBody, InferError> {
    let read = pin!(read_message(body, Inference(service), head.receiving)).await;
    if let (Some(metadata), Ok(message)) = (&caller.metadata, &read)
        && let Some(model) = whole::named(service, &message.bytes, metadata)
    {
        let id = caller.request_id();
        note_request(METHOD, &model.name);
        caller.names(&model.name, id);
        let message =
            Box::pin(whole::infer(service, &model, read?.into_parts(), metadata, (id, caller.logged.clone()))).await?;
        return ResponseBody::encoded(message);
    }
    let read = match read {
        Ok(message) => parse_inference(message, service).await,
        Err(error) => Err(error),
    };
    let message = read.inspect_err(|error| service.log_refusal("", "", caller.request_id(), error))?;
    let ModelInferRequest { model_name: name, model_version: version, id, .. } = &message.request;
    let (version, id) = (version.clone(), if id.is_empty() { caller.request_id() } else { id });
    note_request(METHOD, name);
    caller.names(name, id);
    let trace = entry.and_then(|mut entry| entry.draw(service, name));
    let graph = service.tensor_graph(name, &version);
    if let Some(graph) = graph.inspect_err(|error| service.log_refusal(name, &version, id, error))? {
        let decoded = message.decode(&service.regions, &service.budget, service.config.triton_release);
        let refused = |error: &InferError| service.log_refusal(&graph.graph.name, "", caller.request_id(), error);
        let (mut request, held) = decoded.inspect_err(refused)?;
        graph.check_held(&held)?;
        RequestId::name(caller.request_id.as_ref(), &mut request.id);
        request.parameters.extend(forwarded);
        return Box::pin(infer_graph(service, &graph, request, &head)).await;
    }
    let metadata = caller.metadata.as_deref();
    let model = service.lookup_unary(name, &version, ENDPOINT, |name| entry_of(metadata, name));
    let model = model.inspect_err(|error| service.log_refusal(name, &version, id, error))?;
    let decoded = message.decode(&service.regions, &service.budget, service.config.triton_release);
    let (mut request, held) =
        decoded.inspect_err(|error| service.log_refusal(&model.name, "", caller.request_id(), error))?;
    RequestId::name(caller.request_id.as_ref(), &mut request.id);
    request.parameters.extend(forwarded);
    request.trace.clone_from(&trace);
    request.logged.clone_from(&caller.logged);
    let model = service.home_of(model, &version, &request);
    let response = pin!(service.infer(&model, request, held)).await?;
    let answer = match head.press {
        None => ResponseBody::inference(&response)?,
        Some(press) => Box::pin(ResponseBody::compressed(&response, press, &service.budget)).await?,
    };
    Ok(match trace {
        None => answer,
        Some(trace) => answer.traced(trace),
    })
}

/// Answers a request of the graph, whose steps are all models of this server.
async fn infer_graph(
    service: &Service,
    graph: &TensorGraph,
    request: InferRequest,
    head: &Head,
) -> Result<ResponseBody, InferError> {
    let response = service.infer_graph(graph, request).await?;
    match head.press {
        None => ResponseBody::inference(&response),
        Some(press) => ResponseBody::compressed(&response, press, &service.budget).await,
    }
}
