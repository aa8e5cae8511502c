//! `generate` and `generate_stream` of the graph as a model: the responses of the model that ends it, as they come.

use std::sync::Arc;

use alipes_net::connection::RequestBody;
use alipes_protocol::{Code, InferError};
use alipes_service::Service;
use alipes_service::generate::Generation;
use alipes_service::graph::TensorGraph;
use hyper::{HeaderMap, Response};

use crate::caller::Caller;
use crate::response::{self, ResponseBody};
use crate::{events, generate};

/// Answers a request, with as many events as the graph gives responses or with its one response.
pub async fn answer(
    service: &Arc<Service>,
    graph: TensorGraph,
    events: bool,
    headers: &HeaderMap,
    body: &mut RequestBody,
    caller: Caller<'_>,
) -> Response<ResponseBody> {
    match begin(service, graph, headers, body, caller).await {
        Ok(generation) if events => events::answer(generation).await,
        Ok(generation) => generate::answer(generation).await,
        Err(error) => response::error(&error),
    }
}

async fn begin(
    service: &Arc<Service>,
    graph: TensorGraph,
    headers: &HeaderMap,
    body: &mut RequestBody,
    caller: Caller<'_>,
) -> Result<Generation, InferError> {
    let name = &graph.graph.name;
    let declared = graph.declared_inputs().ok_or_else(|| {
        let text = format!("the steps of graph '{name}' take different inputs: send tensors, to its infer");
        InferError::new(Code::Unsupported, text)
    })?;
    let mut request = generate::read_request(service, name, headers, body, declared).await?;
    caller.name(&mut request.id);
    service.generate_graph(graph, request)
}
