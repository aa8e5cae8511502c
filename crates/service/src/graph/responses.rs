//! A request to a graph whose responses are taken one by one: those of the decoupled model that ends it, or the one
//! response of any other.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use alipes_graph::Graph;
use alipes_protocol::{InferError, InferRequest, InferResponse, RequestedOutput};
use alipes_request::inflight::OwnedAdmission;
use alipes_request::mailbox::{Response, lost};
use alipes_request::responder::{Answer, Reply};
use compact_str::CompactString;
use tokio::time::{Sleep, sleep};

use super::answer::{answer_of, too_long, wanted};
use super::body::Body;
use super::tensor_graph::{GRAPH_VERSION, TensorGraph};
use crate::Service;
use crate::graph_runs::GraphRun;
use crate::model_responses::ModelResponses;

impl Service {
    /// Begins a request to a graph, with any number of responses.
    ///
    /// # Errors
    ///
    /// `Unavailable` while the server drains.
    pub fn stream_graph(
        self: &Arc<Self>,
        graph: TensorGraph,
        request: InferRequest,
    ) -> Result<GraphResponses, InferError> {
        let inside = self.inflight.enter_owned()?;
        let run = self.graph_runs.begin(graph.rows(&request));
        let (name, outputs) = (Arc::clone(&graph.graph), request.outputs.clone());
        let id = request.id.clone();
        let service = Arc::clone(self);
        let deadline = Box::pin(sleep(graph.graph.timeout));
        let steps = Box::pin(async move { answer_of(&service, &graph, request, true).await });
        Ok(GraphResponses {
            stage: GraphStage::Steps(steps),
            graph: name,
            id,
            outputs,
            deadline: Some(deadline),
            run: Some(run),
            _inside: inside,
        })
    }
}

/// The responses to a request of a graph. Dropping it withdraws the requests of its steps.
pub struct GraphResponses {
    stage: GraphStage,
    graph: Arc<Graph>,
    id: CompactString,
    outputs: Vec<RequestedOutput>,
    /// When the graph's timeout ends; none once the first response is there, which is all that the timeout is for.
    deadline: Option<Pin<Box<Sleep>>>,
    /// Its place in the statistics of the graph; none once the last response was taken.
    run: Option<GraphRun>,
    // After the steps, which it counts.
    _inside: OwnedAdmission,
}

/// What the next response is waited for.
enum GraphStage {
    /// Steps before the answer.
    Steps(Pin<Box<dyn Future<Output = Result<Body, InferError>> + Send>>),
    /// The decoupled model that gives the answer.
    Responses(Box<ModelResponses>),
    /// The last response was taken.
    Over,
}

impl GraphResponses {
    /// The next response, or the end without a further one; none after the last.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Response>> {
        let response = ready!(self.poll_in_time(context));
        if let Some(response) = &response {
            self.record(response);
        }
        Poll::Ready(response)
    }

    fn record(&mut self, response: &Response) {
        if let (Some(run), Some(Err(error))) = (&mut self.run, &response.answer) {
            run.fail(error);
        }
        if response.last {
            self.run.take().into_iter().for_each(GraphRun::end);
        }
    }

    fn poll_in_time(&mut self, context: &mut Context<'_>) -> Poll<Option<Response>> {
        let polled = self.poll_stage(context);
        let deadline = match &mut self.deadline {
            Some(deadline) if polled.is_pending() => deadline,
            _ => return polled,
        };
        ready!(deadline.as_mut().poll(context));
        Poll::Ready(Some(self.last(Err(too_long(&self.graph)))))
    }

    /// A response as one of the graph.
    pub fn response(&self, Reply { outputs, parameters }: Reply) -> InferResponse {
        InferResponse {
            id: self.id.clone(),
            model_name: self.graph.name.as_str().into(),
            model_version: GRAPH_VERSION,
            parameters,
            outputs,
        }
    }

    fn poll_stage(&mut self, context: &mut Context<'_>) -> Poll<Option<Response>> {
        loop {
            match &mut self.stage {
                GraphStage::Over => return Poll::Ready(None),
                GraphStage::Responses(responses) => {
                    let response = ready!(responses.poll_next(context));
                    self.deadline = None;
                    return Poll::Ready(response.map(|response| self.passed_on(response)));
                }
                GraphStage::Steps(steps) => match ready!(steps.as_mut().poll(context)) {
                    Ok(Body::Stream(responses)) => {
                        let found = responses.lock().take();
                        let Some(responses) = found else { return Poll::Ready(Some(self.last(Err(lost())))) };
                        self.stage = GraphStage::Responses(responses);
                    }
                    Ok(Body::Tensors { tensors, .. }) => {
                        let outputs = wanted(&tensors, &self.outputs, &self.graph.name);
                        let answer = outputs.map(|outputs| Reply { outputs, parameters: Vec::new() });
                        return Poll::Ready(Some(self.last(answer)));
                    }
                    Ok(Body::Failed(error)) => return Poll::Ready(Some(self.last(Err(*error)))),
                    Err(error) => return Poll::Ready(Some(self.last(Err(error)))),
                },
            }
        }
    }

    /// The last response.
    fn last(&mut self, answer: Answer) -> Response {
        self.stage = GraphStage::Over;
        self.deadline = None;
        Response { tag: 0, answer: Some(answer), last: true }
    }

    /// A response of the model that ends the graph, with the outputs that were asked for.
    fn passed_on(&mut self, mut response: Response) -> Response {
        if let Some(Ok(reply)) = &mut response.answer
            && !self.outputs.is_empty()
            && !reply.outputs.is_empty()
        {
            match wanted(&reply.outputs, &self.outputs, &self.graph.name) {
                Ok(outputs) => reply.outputs = outputs,
                Err(error) => response.answer = Some(Err(error)),
            }
        }
        if response.last {
            self.stage = GraphStage::Over;
        }
        response
    }
}
