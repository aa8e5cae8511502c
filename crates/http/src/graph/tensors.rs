//! Requests of V2 to the graph as a model: JSON and binary tensors, which go from step to step as they are.

use std::sync::Arc;

use alipes_net::connection::RequestBody;
use alipes_protocol::{Code, InferError, Origin, limits};
use alipes_service::Service;
use alipes_service::graph::TensorGraph;
use hyper::body::Body as _;
use hyper::{HeaderMap, Response};

use crate::body::{self, Expected, Received};
use crate::caller::Caller;
use crate::compression::{self, Coding};
use crate::infer::{self, encode, header_length, read_request, unknown_coding};
use crate::response::{self, ResponseBody};

/// Answers a request.
pub async fn answer(
    service: &Arc<Service>,
    graph: &TensorGraph,
    headers: &HeaderMap,
    body: &mut RequestBody,
    caller: Caller<'_>,
) -> Response<ResponseBody> {
    let Some(coding) = Coding::of_request(headers) else {
        let error = InferError::new(Code::Unsupported, "Unsupported compression type").at(Origin::Endpoint);
        return unknown_coding(&error);
    };
    let answered = infer_graph(service, graph, headers, body, coding, caller).await;
    answered.unwrap_or_else(|error| response::infer_error(&error))
}

async fn infer_graph(
    service: &Arc<Service>,
    graph: &TensorGraph,
    headers: &HeaderMap,
    body: &mut RequestBody,
    coding: Coding,
    caller: Caller<'_>,
) -> Result<Response<ResponseBody>, InferError> {
    let max_input_bytes = service.config.http_max_input_bytes;
    let announced = if coding == Coding::Identity { body.size_hint().exact() } else { None };
    let length = header_length(headers, announced, service.config.triton_release)?;
    let max_bytes = match length {
        Some(length) if length > 0 && coding == Coding::Identity => limits::HTTP_MAX_BODY_BYTES,
        _ => max_input_bytes as u64,
    };
    let expected = Expected { header_length: length, max_bytes, memory: None, budget: &service.budget };
    let (body, charge) = if coding == Coding::Identity {
        body::read(body, expected).await?
    } else {
        let compressed = body::read_text(body, max_bytes, &service.budget).await?;
        compression::expand(compressed, Received::new(&expected, 0), max_input_bytes).await?
    };
    let (mut request, held, charge) = read_request(service, body, length, &graph.graph.name, charge).await?;
    graph.check_held(&held)?;
    charge.ride(&service.budget, &mut request, &held)?;
    caller.name(&mut request.id);
    let (outputs, binary_by_default) = (request.outputs.clone(), request.binary_by_default);
    let response = Box::pin(service.infer_graph(graph, request)).await?;
    let encoded = encode(response, outputs, binary_by_default, None).await?;
    Ok(infer::respond(encoded, Coding::of_answer(headers), &service.budget).await)
}
