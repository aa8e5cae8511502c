//! The calls of one request's steps, which are models of this server.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use alipes_graph::{Condition, Failure, NoJson, Reply, Services, first_holding};
use alipes_protocol::{Code, InferError, InferRequest, Parameter};
use alipes_runtime::model::ModelVersion;
use alipes_shared_memory::Held;
use compact_str::CompactString;

use super::body::{Body, fitted, json_of, merged};
use super::tensor_graph::TensorGraph;
use crate::Service;

/// What the steps of one request are called with.
pub(super) struct TensorCalls<'a> {
    pub(super) service: &'a Service,
    pub(super) graph: &'a TensorGraph,
    /// The request's id and parameters, which every step sees.
    pub(super) id: CompactString,
    pub(super) parameters: Vec<(String, Parameter)>,
    /// Whether the caller takes any number of responses.
    pub(super) streams: bool,
}

impl TensorCalls<'_> {
    /// Begins a request to a decoupled model, whose responses are the graph's.
    async fn begin(&self, model: &Arc<ModelVersion>, request: InferRequest) -> Reply<Body> {
        if !self.streams {
            let text = format!(
                "graph '{}' ends with the decoupled model '{}': send the request by ModelStreamInfer or to \
                 generate_stream",
                self.graph.graph.name, model.name
            );
            return failed(InferError::new(Code::Unsupported, text));
        }
        match Box::pin(self.service.begin(model, request)).await {
            Ok(responses) => Reply { status: 200, body: Body::of_responses(responses) },
            Err(error) => failed(error),
        }
    }
}

impl Services for TensorCalls<'_> {
    type Body = Body;

    async fn call(&self, service: usize, body: Body) -> Result<Reply<Body>, Failure> {
        let tensors = match body {
            Body::Tensors { tensors, .. } => tensors,
            Body::Failed(error) => return Ok(failed(*error)),
            // A load refuses such a graph; the model may have become decoupled since.
            Body::Stream(_) => {
                let text = format!("graph '{}' calls a step with the responses of a stream", self.graph.graph.name);
                return Ok(failed(InferError::new(Code::Unsupported, text)));
            }
        };
        let model = &self.graph.models[service];
        let request = InferRequest {
            id: self.id.clone(),
            inputs: fitted(&tensors, &model.spec.inputs),
            parameters: self.parameters.clone(),
            admitted: true,
            ..InferRequest::default()
        };
        if model.is_decoupled() {
            return Ok(self.begin(model, request).await);
        }
        Ok(match Box::pin(self.service.infer(model, request, Held::default())).await {
            Ok(response) => {
                Reply { status: 200, body: Body::Tensors { tensors: response.outputs.into(), are_inputs: false } }
            }
            Err(error) => failed(error),
        })
    }

    async fn first(&self, conditions: Vec<Option<Condition>>, body: &Body) -> Result<Option<usize>, NoJson> {
        first_holding(&conditions, &json_of(body).ok_or(NoJson)?)
    }

    async fn instances(&self, body: Body) -> Body {
        // Outputs become inputs in any case.
        body
    }

    async fn part(&self, body: Body) -> Result<Body, Failure> {
        match body {
            Body::Stream(_) => Err(Failure::new("a decoupled model cannot be a part of an Ensemble")),
            body => Ok(body),
        }
    }

    fn merge(&self, parts: Vec<(&str, Body)>) -> Result<Body, Failure> {
        Ok(merged(&parts))
    }

    fn percent(&self) -> u32 {
        // A hasher of this call alone: its keys are random.
        u32::try_from(RandomState::new().hash_one(0) % 100).unwrap_or_default()
    }
}

fn failed(error: InferError) -> Reply<Body> {
    Reply { status: error.code.row().http_status, body: Body::Failed(Box::new(error)) }
}
