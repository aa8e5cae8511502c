//! One request through a graph: which steps are called with which bodies, and what is answered.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::condition::Condition;
use crate::graph::{Graph, Node, Step, Target};
use crate::json::quoted;
use crate::spec::RouterKind;

/// The cause where no condition of a switch holds. Source: KServe's router.
const NO_ROUTE: &str = "None of the routes matched with the switch condition";

/// The cause where a condition looks at an answer that is no JSON. Source: KServe's router.
const NO_JSON: &str = "invalid response";

/// An answer of a step, of a node or of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<B> {
    /// Its status of HTTP.
    pub status: u16,
    /// Its body.
    pub body: B,
}

impl<B> Reply<B> {
    /// Whether the step did what it was asked to.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Why there is no answer of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The status of the answer to the client.
    pub status: u16,
    /// The reason.
    pub cause: String,
}

impl Failure {
    /// A failure of a step.
    pub fn new(cause: impl Into<String>) -> Failure {
        Failure { status: 500, cause: cause.into() }
    }

    /// The body of the answer to the client. Source: KServe's router.
    pub fn body(&self) -> String {
        format!(r#"{{"error":"Failed to process request","cause":{}}}"#, quoted(&self.cause))
    }
}

/// What a graph needs of its surroundings: who calls its services, and what can be done with bodies.
pub trait Services: Sync {
    /// What steps are sent and answer: bytes of JSON, or tensors.
    type Body: Clone + Send + Sync;

    /// Calls the service of a number. Dropping the future withdraws the call.
    ///
    /// # Errors
    ///
    /// There is no answer: the service cannot be reached, or does not answer in time.
    fn call(&self, service: usize, body: Self::Body)
    -> impl Future<Output = Result<Reply<Self::Body>, Failure>> + Send;

    /// The number of the first condition that holds for a body; of those that are none, none does.
    ///
    /// # Errors
    ///
    /// The body is nothing that conditions look at.
    fn first(
        &self,
        conditions: Vec<Option<Condition>>,
        body: &Self::Body,
    ) -> impl Future<Output = Result<Option<usize>, NoJson>> + Send;

    /// A body whose predictions have become instances, where it has some.
    fn instances(&self, body: Self::Body) -> impl Future<Output = Self::Body> + Send;

    /// The answer of an ensemble's step, as it stands in the answer of the ensemble.
    ///
    /// # Errors
    ///
    /// The body cannot stand there.
    fn part(&self, body: Self::Body) -> impl Future<Output = Result<Self::Body, Failure>> + Send;

    /// The answer of an ensemble, of the parts by their keys in the order of the steps.
    ///
    /// # Errors
    ///
    /// The parts do not go together.
    fn merge(&self, parts: Vec<(&str, Self::Body)>) -> Result<Self::Body, Failure>;

    /// A number from 0 to 99, each as likely as any other.
    fn percent(&self) -> u32;
}

/// A body is no JSON, so conditions cannot look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoJson;

type Outcome<S> = Result<Reply<<S as Services>::Body>, Failure>;
type Running<'a, S> = Pin<Box<dyn Future<Output = Outcome<S>> + Send + 'a>>;

/// Answers a request.
///
/// # Errors
///
/// There is no answer of a step that is needed, or none of a switch's conditions holds.
pub async fn run<S: Services>(graph: &Graph, services: &S, request: S::Body) -> Outcome<S> {
    run_node(graph, services, graph.root(), request).await
}

/// Boxed, since nodes call nodes.
fn run_node<'a, S: Services>(graph: &'a Graph, services: &'a S, node: usize, request: S::Body) -> Running<'a, S> {
    let node = graph.node(node);
    Box::pin(async move {
        match node.kind {
            RouterKind::Sequence => sequence(graph, services, node, request).await,
            RouterKind::Ensemble => ensemble(graph, services, node, request).await,
            RouterKind::Splitter => match drawn(node, services.percent()) {
                Some(step) => run_step(graph, services, step, request).await,
                None => Err(Failure::new("no route was selected by the splitter")),
            },
            RouterKind::Switch => match switched(services, node, &request).await {
                Some(step) => run_step(graph, services, step, request).await,
                None => Err(Failure { status: 404, cause: NO_ROUTE.to_owned() }),
            },
        }
    })
}

/// The answer of a step. Whatever fails within a node that it names is 500, or what is worse.
async fn run_step<S: Services>(graph: &Graph, services: &S, step: &Step, request: S::Body) -> Outcome<S> {
    let reply = match step.target {
        Target::Node(node) => run_node(graph, services, node, request).await,
        Target::Service(service) => services.call(service, request).await,
    };
    reply.map_err(|failure| Failure { status: failure.status.max(500), ..failure })
}

/// The step of a splitter for a number drawn from 0 to 99.
fn drawn(node: &Node, percent: u32) -> Option<&Step> {
    let mut end = 0;
    node.steps.iter().find(|step| {
        end += step.weight;
        percent < end
    })
}

/// The first step of a switch whose condition holds; one without a condition is never called, as in KServe.
async fn switched<'n, S: Services>(services: &S, node: &'n Node, request: &S::Body) -> Option<&'n Step> {
    let conditions = node.steps.iter().map(|step| step.condition.clone()).collect();
    let number = services.first(conditions, request).await.ok().flatten()?;
    node.steps.get(number)
}

async fn sequence<S: Services>(graph: &Graph, services: &S, node: &Node, request: S::Body) -> Outcome<S> {
    let mut last: Option<Reply<S::Body>> = None;
    for step in &node.steps {
        let mut body = match &last {
            Some(reply) if step.response => reply.body.clone(),
            _ => request.clone(),
        };
        if step.map_predictions {
            body = services.instances(body).await;
        }
        if let Some(condition) = &step.condition {
            // Before the first step there is no answer to look at.
            let Some(answered) = &last else { return Err(Failure::new(NO_JSON)) };
            match services.first(vec![Some(condition.clone())], &answered.body).await {
                Err(NoJson) => return Err(Failure::new(NO_JSON)),
                Ok(None) => return Ok(Reply { status: 200, body: answered.body.clone() }),
                Ok(Some(_)) => {}
            }
        }
        let reply = run_step(graph, services, step, body).await?;
        if step.hard && !reply.is_success() {
            return Ok(reply);
        }
        last = Some(reply);
    }
    // A graph has no node without steps.
    last.ok_or_else(|| Failure::new("the sequence has no steps"))
}

/// What a part of an ensemble has come to.
enum Part<'a, S: Services> {
    Runs(Running<'a, S>),
    Done(Reply<S::Body>),
}

async fn ensemble<S: Services>(graph: &Graph, services: &S, node: &Node, request: S::Body) -> Outcome<S> {
    let parts = node.steps.iter().map(|step| {
        let request = request.clone();
        Part::Runs(Box::pin(async move {
            let reply = run_step(graph, services, step, request).await?;
            Ok(Reply { status: reply.status, body: services.part(reply.body).await? })
        }))
    });
    let mut parts: Vec<Part<'_, S>> = parts.collect();
    let mut first = 0;
    let ended = poll_fn(|cx| {
        let failure = poll_parts(&mut parts, cx);
        // In the order of the steps: the first hard failure among them is the answer.
        while let Some(Part::Done(reply)) = parts.get(first) {
            if node.steps[first].hard && !reply.is_success() {
                return Poll::Ready(Ok(Some(reply.clone())));
            }
            first += 1;
        }
        match failure {
            _ if first == parts.len() => Poll::Ready(Ok(None)),
            Some(failure) => Poll::Ready(Err(failure)),
            None => Poll::Pending,
        }
    });
    if let Some(reply) = ended.await? {
        return Ok(reply);
    }
    let answers = node.steps.iter().zip(parts).filter_map(|(step, part)| match part {
        Part::Done(reply) => Some((step.key.as_str(), reply.body)),
        Part::Runs(_) => None,
    });
    Ok(Reply { status: 200, body: services.merge(answers.collect())? })
}

/// Lets all parts go on; the failure of one, where one has failed.
fn poll_parts<S: Services>(parts: &mut [Part<'_, S>], cx: &mut Context<'_>) -> Option<Failure> {
    for part in parts {
        if let Part::Runs(running) = part
            && let Poll::Ready(outcome) = running.as_mut().poll(cx)
        {
            match outcome {
                Ok(reply) => *part = Part::Done(reply),
                Err(error) => return Some(error),
            }
        }
    }
    None
}

#[cfg(test)]
mod tests;
