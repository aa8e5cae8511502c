//! One request whose responses are taken one by one, as many as the model, or the graph, sends.

use std::future;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use alipes_protocol::codec::json::DeclaredInput;
use alipes_protocol::{InferError, InferRequest, InferResponse};
use alipes_runtime::model::ModelVersion;

use super::Service;
use super::graph::{GraphResponses, TensorGraph};
use super::model_responses::ModelResponses;

impl Service {
    /// Begins a request to a model of any kind.
    ///
    /// # Errors
    ///
    /// What the request's checks refuse, and `Unavailable` while the server drains.
    pub async fn generate(&self, model: &Arc<ModelVersion>, request: InferRequest) -> Result<Generation, InferError> {
        self.begin(model, request).await.map(|responses| Generation(Responding::Model(responses)))
    }

    /// Begins a request to a graph.
    ///
    /// # Errors
    ///
    /// `Unavailable` while the server drains.
    pub fn generate_graph(
        self: &Arc<Self>,
        graph: TensorGraph,
        request: InferRequest,
    ) -> Result<Generation, InferError> {
        self.stream_graph(graph, request).map(|responses| Generation(Responding::Graph(responses)))
    }
}

/// What a model declares of an input, where it has one of this name.
pub fn declared_input(model: &ModelVersion, name: &str) -> Option<DeclaredInput> {
    let port = model.spec.inputs.iter().find(|port| port.name == name)?;
    let batch = (model.spec.max_batch_size > 0).then_some(-1);
    Some(DeclaredInput { datatype: port.datatype, shape: batch.into_iter().chain(port.dims.iter().copied()).collect() })
}

/// A request in flight. Dropping it cancels the request: while it is queued, it never reaches the model.
pub struct Generation(Responding);

/// Who responds.
enum Responding {
    Model(ModelResponses),
    Graph(GraphResponses),
}

impl Generation {
    /// The next response; none after the last.
    pub async fn next(&mut self) -> Option<Result<InferResponse, InferError>> {
        future::poll_fn(|context| self.poll_next(context)).await
    }

    /// The poll form of `next`.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<InferResponse, InferError>>> {
        loop {
            let polled = match &mut self.0 {
                Responding::Model(responses) => responses.poll_next(context),
                Responding::Graph(responses) => responses.poll_next(context),
            };
            let Some(response) = ready!(polled) else { return Poll::Ready(None) };
            // An end without a response is no response.
            if let Some(answer) = response.answer {
                return Poll::Ready(Some(answer.map(|reply| match &self.0 {
                    Responding::Model(responses) => responses.response(reply),
                    Responding::Graph(responses) => responses.response(reply),
                })));
            }
        }
    }
}
