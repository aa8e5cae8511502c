//! The requests of one stream, and their responses in the order that the protocol promises.
//!
//! Responses of ordinary models follow the order of their requests, one for each: where a model sends one and then
//! fails, the first stands. Those of decoupled models are sent as they arrive, and so are those of a graph that a
//! decoupled model may end.
//! Source: Triton's stream semantics, recorded.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use alipes_graph::Graph;
use alipes_protocol::trace::Trace;
use alipes_protocol::{InferError, InferRequest};
use alipes_request::check::explain_refusal;
use alipes_request::inflight::OwnedAdmission;
use alipes_request::mailbox::{Caller, Mailbox, Response};
use alipes_request::responder::{Answer, Reply, Responder};
use alipes_runtime::model::ModelVersion;
use alipes_runtime::traffic::OpenOutcome;
use alipes_shared_memory::Held;
use compact_str::CompactString;
use slab::Slab;

use super::Service;
use super::finishing::Finishing;
use super::graph::{GRAPH_VERSION, GraphResponses, TensorGraph};
use super::model_responses::outputs_of;
use super::offload::offload;
use super::payloads::Exchange;

/// The open requests of one stream. Dropping the session cancels them all.
pub struct Session {
    service: Arc<Service>,
    mailbox: Arc<Mailbox>,
    // Responses carry the key of their request. A key is free again once the last response was taken, after which none
    // arrives.
    requests: Slab<OpenRequest>,
    /// Responses of the graph, by the key of their request, which the session takes as it reports them.
    graphs: Vec<(usize, GraphResponses)>,
    /// Requests to ordinary models, oldest first.
    order: VecDeque<usize>,
    arrived: VecDeque<Response>,
    consumed: Consumed,
    /// The response that is finished on another thread; those behind it wait.
    finishing: Option<FinishingResponse>,
    /// The request that ended last, lent to its last event.
    ended: Option<OpenRequest>,
}

/// A response that is finished on another thread: that of which request, whether its last, and the rest of it.
struct FinishingResponse {
    key: usize,
    last: bool,
    answer: Pin<Box<dyn Future<Output = Answer> + Send>>,
}

/// The submission of a request on another thread. The next request of the stream is not submitted before its outcome
/// has been handed to [`Session::submitted`].
pub type Submission = Pin<Box<dyn Future<Output = SubmissionOutcome> + Send>>;

/// What became of a submission.
pub struct SubmissionOutcome {
    key: usize,
    outcome: Result<(), InferError>,
}

/// One request without its last response.
struct OpenRequest {
    id: CompactString,
    /// None where the request was refused before it reached a model.
    model: Option<Submitted>,
    /// The graph, where the request is one of it.
    graph: Option<Arc<Graph>>,
    /// Its responses wait for those of earlier ordered requests.
    ordered: bool,
    empty_final_response: bool,
    /// The first response to an ordered request, until the request has ended and those before it were answered.
    held: Option<Answer>,
    ended: bool,
    /// Its place in the payload log.
    exchange: Option<Exchange>,
    /// Its place in the outcomes of its version.
    outcome: Option<Box<OpenOutcome>>,
}

/// A request that was submitted to a model.
struct Submitted {
    version: Arc<ModelVersion>,
    arrived: Instant,
    trace: Option<Arc<Trace>>,
    /// What is left to do with its responses; almost always nothing.
    finishing: Option<Arc<Finishing>>,
    caller: Caller,
    _inside: OwnedAdmission,
}

/// Responses to one request that were consumed and not yet reported to its model.
#[derive(Default)]
struct Consumed {
    request: usize,
    responses: u32,
    bytes: u64,
}

/// Who responds to a request: a version of a model, or the graph.
#[derive(Clone, Copy, Debug)]
pub struct EventModel<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its version.
    pub version: i64,
}

/// A response, or the end of a request.
pub struct Event<'a> {
    /// The request's id.
    pub id: &'a str,
    /// Who responds; none where the request was refused before it reached a model.
    pub model: Option<EventModel<'a>>,
    /// The response; none where the request ends without a further one.
    pub answer: Option<Answer>,
    /// This is the last event of the request.
    pub last: bool,
    /// Its trace, where it is traced.
    pub trace: Option<&'a Arc<Trace>>,
}

impl Session {
    /// A session without requests.
    pub fn new(service: Arc<Service>) -> Session {
        Session {
            mailbox: Mailbox::counted(Arc::clone(&service.budget)),
            service,
            requests: Slab::new(),
            graphs: Vec::new(),
            order: VecDeque::new(),
            arrived: VecDeque::new(),
            consumed: Consumed::default(),
            finishing: None,
            ended: None,
        }
    }

    /// The number of open requests.
    pub fn in_flight(&self) -> usize {
        self.requests.len()
    }

    /// Submits a request. A refusal is its only response. Where it takes long, the submission is to be driven by the
    /// caller.
    pub fn submit(&mut self, model: Arc<ModelVersion>, mut request: InferRequest, held: Held) -> Option<Submission> {
        let exchange = self.service.payloads.begin(&model, &mut request);
        let arrived = alipes_clock::now();
        let key = self.requests.vacant_key();
        let open = OpenRequest {
            empty_final_response: request.empty_final_response,
            exchange,
            ..OpenRequest::new(request.id.clone(), !model.is_decoupled())
        };
        let (finishing, trace) = (Finishing::of(&request, held), request.trace.clone());
        let finishing = (!finishing.is_nothing()).then(|| Arc::new(finishing));
        let entered = self.service.inflight.enter_owned();
        let mut submission = None;
        let submitted = entered.and_then(|inside| {
            if model.submits_at_once(&request) {
                let submitted = model.submit(request, arrived, || Responder::into_mailbox(&self.mailbox, key as u64));
                let count = |error: &InferError| self.service.count_outcome(&model, arrived, Err(error));
                return Ok((inside, submitted.inspect_err(count)?));
            }
            let (responder, caller) = Responder::into_mailbox(&self.mailbox, key as u64);
            submission = Some(submission_of(key, &model, request, arrived, responder));
            Ok((inside, caller))
        });
        match submitted {
            Ok((_inside, caller)) => {
                let outcome = self.service.open_outcome(&model, arrived);
                let model = Some(Submitted { version: model, arrived, trace, finishing, caller, _inside });
                self.admit(OpenRequest { model, outcome, ..open });
            }
            Err(error) => self.refuse_open(open, self.explained(&model, error)),
        }
        submission
    }

    /// Begins a request to a graph. A refusal is its only response.
    pub fn submit_graph(&mut self, graph: TensorGraph, request: InferRequest) {
        let (name, ordered) = (Arc::clone(&graph.graph), !graph.is_decoupled());
        let open = OpenRequest {
            empty_final_response: request.empty_final_response,
            ..OpenRequest::new(request.id.clone(), ordered)
        };
        match self.service.stream_graph(graph, request) {
            Ok(responses) => {
                let key = self.admit(OpenRequest { graph: Some(name), ..open });
                self.graphs.push((key, responses));
            }
            Err(error) => self.refuse_open(open, error),
        }
    }

    /// Takes note of what became of a submission.
    pub fn submitted(&mut self, SubmissionOutcome { key, outcome }: SubmissionOutcome) {
        if let (Err(error), Some(open)) = (outcome, self.requests.get_mut(key)) {
            let error = match open.model.take() {
                Some(submitted) => self.explained(&submitted.version, error),
                None => error,
            };
            self.arrived.push_back(Response { tag: key as u64, answer: Some(Err(error)), last: true });
        }
    }

    fn explained(&self, model: &ModelVersion, error: InferError) -> InferError {
        explain_refusal(&model.spec, self.service.config.triton_release, error)
    }

    /// Adds a request that reaches no model: the error is its only response, in order where it is ordered.
    pub fn refuse(&mut self, id: CompactString, ordered: bool, error: InferError) {
        self.refuse_open(OpenRequest::new(id, ordered), error);
    }

    fn refuse_open(&mut self, open: OpenRequest, error: InferError) {
        let tag = self.admit(open) as u64;
        self.arrived.push_back(Response { tag, answer: Some(Err(error)), last: true });
    }

    fn admit(&mut self, open: OpenRequest) -> usize {
        let ordered = open.ordered;
        let key = self.requests.insert(open);
        if ordered {
            self.order.push_back(key);
        }
        key
    }

    /// The next event, where one has arrived; else the task is woken when one does.
    pub fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Event<'_>> {
        loop {
            if let Some(FinishingResponse { answer, .. }) = &mut self.finishing {
                let answer = ready!(answer.as_mut().poll(context));
                let Some(FinishingResponse { key, last, .. }) = self.finishing.take() else { continue };
                return Poll::Ready(self.event(key, Some(answer), last));
            }
            match self.next_due() {
                // An end without a response is an event only where the request asked for one.
                Some((key, None, _)) if !self.requests[key].empty_final_response => {
                    self.log_end(key, None);
                    self.forget(key);
                }
                Some((key, None, last)) => return Poll::Ready(self.event(key, None, last)),
                Some((key, Some(answer), last)) => {
                    if let Some(answer) = self.finish(key, answer, last) {
                        return Poll::Ready(self.event(key, Some(answer), last));
                    }
                }
                None => {
                    self.report_consumed();
                    self.ended = None;
                    ready!(self.poll_arrived(context));
                }
            }
        }
    }

    /// Takes what has arrived, of the graph and of models.
    fn poll_arrived(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let arrived = &mut self.arrived;
        // One response of each at a time: its model sends more once this one is taken.
        self.graphs.retain_mut(|(key, responses)| match responses.poll_next(context) {
            Poll::Pending => true,
            Poll::Ready(None) => false,
            Poll::Ready(Some(response)) => {
                let last = response.last;
                arrived.push_back(Response { tag: *key as u64, ..response });
                !last
            }
        });
        if arrived.is_empty() { self.mailbox.poll_take(context, arrived) } else { Poll::Ready(()) }
    }

    /// The next response in order: its request, the response, and whether it is the last. Others are held.
    fn next_due(&mut self) -> Option<(usize, Option<Answer>, bool)> {
        loop {
            if let Some(due) = self.next_in_order() {
                return Some(due);
            }
            let Response { tag, answer, last } = self.arrived.pop_front()?;
            let key = usize::try_from(tag).ok()?;
            let open = self.requests.get_mut(key)?;
            open.count(answer.as_ref(), last);
            let is_next = self.order.front() == Some(&key) && open.held.is_none() && last;
            if !open.ordered || is_next {
                return Some((key, answer, last));
            }
            open.held = open.held.take().or(answer);
            open.ended = last;
        }
    }

    /// The response of the oldest ordered request, once that has ended.
    fn next_in_order(&mut self) -> Option<(usize, Option<Answer>, bool)> {
        let &key = self.order.front()?;
        let open = &mut self.requests[key];
        open.ended.then(|| (key, open.held.take(), true))
    }

    fn event(&mut self, key: usize, answer: Option<Answer>, last: bool) -> Event<'_> {
        if let (Some(exchange), Some(answer)) = (&self.requests[key].exchange, &answer) {
            exchange.end(answer.as_ref().map(|reply| (&reply.outputs[..], &reply.parameters[..])));
        }
        let open = if last {
            self.log_end(key, answer.as_ref());
            self.forget(key);
            self.ended.as_ref()
        } else {
            self.requests.get(key)
        };
        let id = open.map_or("", |open| open.id.as_str());
        let trace = open.and_then(|open| open.model.as_ref()?.trace.as_ref());
        Event { id, model: open.and_then(OpenRequest::responding), answer, last, trace }
    }

    /// Logs the outcome of a request that has ended, where the log is verbose.
    fn log_end(&self, key: usize, last: Option<&Answer>) {
        if self.service.log.is_verbose() {
            let OpenRequest { id, model, .. } = &self.requests[key];
            if let Some(Submitted { version, arrived, .. }) = model {
                let failure = last.and_then(|answer| answer.as_ref().err());
                self.service.log_request(version, id, alipes_clock::elapsed(*arrived), failure);
            }
        }
    }

    /// Counts a response as consumed and applies the requested classification and regions: here, or on another thread
    /// where that takes long.
    fn finish(&mut self, key: usize, answer: Answer, last: bool) -> Option<Answer> {
        if self.consumed.request != key {
            self.report_consumed();
            self.consumed.request = key;
        }
        self.consumed.responses += 1;
        let Ok(mut reply) = answer else { return Some(answer) };
        self.consumed.bytes += reply.bytes();
        let Some(Submitted { version, finishing: Some(finishing), .. }) = &self.requests[key].model else {
            return Some(Ok(reply));
        };
        if finishing.is_short(&reply.outputs) {
            return Some(finishing.finish(&version.spec, &mut reply.outputs).map(|()| reply));
        }
        let (version, finishing) = (Arc::clone(version), Arc::clone(finishing));
        let answer = Box::pin(async move {
            let outputs = finishing.finish_beside(&version, reply.outputs).await?;
            Ok(Reply { outputs, ..reply })
        });
        self.finishing = Some(FinishingResponse { key, last, answer });
        None
    }

    /// Reports consumed responses to their model, which may then send more.
    pub fn report_consumed(&mut self) {
        let Consumed { request, responses, bytes } = std::mem::take(&mut self.consumed);
        if responses > 0
            && let Some(OpenRequest { model: Some(model), .. }) = self.requests.get(request)
        {
            model.caller.consumed(responses, bytes);
        }
    }

    /// Removes a request that has ended; its key is free.
    fn forget(&mut self, key: usize) {
        let open = self.requests.remove(key);
        if open.ordered {
            self.order.pop_front();
        }
        if self.consumed.request == key {
            self.consumed = Consumed::default();
        }
        self.ended = Some(open);
    }
}

/// The submission of a request on another thread.
fn submission_of(
    key: usize,
    model: &Arc<ModelVersion>,
    request: InferRequest,
    arrived: Instant,
    responder: Responder,
) -> Submission {
    let model = Arc::clone(model);
    Box::pin(async move {
        let submit = move || {
            let mut responder = Some(responder);
            let respond = || (responder.take().unwrap_or_else(Responder::nobody), ());
            let outcome = model.submit(request, arrived, respond);
            // Refused before anybody had it: the caller learns that from the outcome.
            responder.into_iter().for_each(Responder::dismiss);
            outcome
        };
        let outcome = offload(submit).await;
        let outcome = outcome.unwrap_or_else(|| Err(InferError::internal("the request could not be submitted")));
        SubmissionOutcome { key, outcome }
    })
}

impl Drop for Session {
    fn drop(&mut self) {
        for open in self.requests.drain() {
            if let Some(Submitted { version, caller, .. }) = open.model {
                drop(caller);
                version.caller_left();
            }
        }
    }
}

impl OpenRequest {
    fn new(id: CompactString, ordered: bool) -> OpenRequest {
        OpenRequest {
            id,
            model: None,
            graph: None,
            ordered,
            empty_final_response: false,
            held: None,
            ended: false,
            exchange: None,
            outcome: None,
        }
    }

    /// Counts a response, as it arrives. An ordinary model answers with its first, whatever follows.
    fn count(&mut self, answer: Option<&Answer>, last: bool) {
        if let Some(outcome) = &mut self.outcome {
            let answer = answer.filter(|_| self.held.is_none());
            outcome.take(alipes_clock::now(), outputs_of(answer), last);
        }
    }

    /// Who responds.
    fn responding(&self) -> Option<EventModel<'_>> {
        let model = self.model.as_ref().map(|Submitted { version, .. }| &version.spec);
        let model = model.map(|spec| EventModel { name: &spec.name, version: spec.version });
        let graph = self.graph.as_ref().map(|graph| EventModel { name: &graph.name, version: GRAPH_VERSION });
        model.or(graph)
    }
}
