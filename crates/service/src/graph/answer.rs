//! The one response of a graph.

use alipes_graph::{Failure, Graph, Reply, run};
use alipes_protocol::{Code, InferError, InferRequest, InferResponse, RequestedOutput, Tensor};
use tokio::time::timeout;

use super::body::Body;
use super::calls::TensorCalls;
use super::tensor_graph::{GRAPH_VERSION, TensorGraph};
use crate::Service;
use crate::graph_runs::GraphRun;

impl Service {
    /// A request that is sent to the graph as JSON begins.
    pub fn begin_graph_run(&self) -> GraphRun {
        self.graph_runs.begin(1)
    }

    /// Runs a request through a graph that gives one response.
    ///
    /// Dropping the future withdraws the requests of its steps.
    ///
    /// # Errors
    ///
    /// The error of a step that fails its node, `NotFound` where no condition holds, `Unsupported` where a decoupled
    /// model would answer, `DeadlineExceeded`, and `Unavailable` while the server drains.
    pub async fn infer_graph(&self, graph: &TensorGraph, request: InferRequest) -> Result<InferResponse, InferError> {
        let _inflight = self.admit(&request)?;
        let mut run = self.graph_runs.begin(graph.rows(&request));
        let outcome = self.answer_graph(graph, request).await;
        if let Err(error) = &outcome {
            run.fail(error);
        }
        run.end();
        outcome
    }

    async fn answer_graph(&self, graph: &TensorGraph, request: InferRequest) -> Result<InferResponse, InferError> {
        let (id, outputs) = (request.id.clone(), request.outputs.clone());
        let answered = timeout(graph.graph.timeout, answer_of(self, graph, request, false)).await;
        let tensors = match answered.unwrap_or_else(|_| Err(too_long(&graph.graph)))? {
            Body::Tensors { tensors, .. } => tensors,
            Body::Failed(error) => return Err(*error),
            Body::Stream(_) => return Err(InferError::internal("a graph that gives one response has begun to stream")),
        };
        Ok(InferResponse {
            id,
            model_name: graph.graph.name.as_str().into(),
            model_version: GRAPH_VERSION,
            parameters: Vec::new(),
            outputs: wanted(&tensors, &outputs, &graph.graph.name)?,
        })
    }
}

/// The answer of a graph; `streams` says whether a decoupled model may give it.
pub(super) async fn answer_of(
    service: &Service,
    graph: &TensorGraph,
    request: InferRequest,
    streams: bool,
) -> Result<Body, InferError> {
    if request.raw {
        return Err(InferError::invalid("a graph takes tensors by name: name each, with its datatype and shape"));
    }
    let InferRequest { id, inputs, parameters, .. } = request;
    let calls = TensorCalls { service, graph, id, parameters, streams };
    let first = Body::Tensors { tensors: inputs.into(), are_inputs: true };
    let Reply { body, .. } = run(&graph.graph, &calls, first).await.map_err(|failure| error_of(&failure))?;
    Ok(body)
}

/// The tensors that were asked for; all of them where none was.
pub(super) fn wanted(tensors: &[Tensor], outputs: &[RequestedOutput], graph: &str) -> Result<Vec<Tensor>, InferError> {
    let is_wanted = |tensor: &&Tensor| outputs.is_empty() || outputs.iter().any(|output| output.name == *tensor.name);
    let found: Vec<Tensor> = tensors.iter().filter(is_wanted).cloned().collect();
    match outputs.iter().find(|output| found.iter().all(|tensor| *tensor.name != output.name)) {
        Some(absent) => {
            Err(InferError::invalid(format!("unexpected inference output '{}' for graph '{graph}'", absent.name)))
        }
        None => Ok(found),
    }
}

/// The error of a request that takes longer than the graph allows.
pub(super) fn too_long(graph: &Graph) -> InferError {
    let seconds = graph.timeout.as_secs_f64();
    let text = format!("the graph was not done in {seconds} s: its timeout, or serverWrite of routerTimeouts");
    InferError::new(Code::DeadlineExceeded, text)
}

fn error_of(failure: &Failure) -> InferError {
    let code = if failure.status == 404 { Code::NotFound } else { Code::Internal };
    InferError::new(code, failure.cause.clone())
}
