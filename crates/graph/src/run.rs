//! One request through a graph: which steps are called with which bodies, and what is answered.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;

use crate::graph::{Graph, Node, Step, Target};
use crate::json::{is_valid, object_text, quoted};
use alipes_protocol::limits::GRAPH_AT_ONCE_BYTES;
use crate::mapping::instances_of;
use crate::spec::RouterKind;

/// The cause where no condition of a switch holds. Source: KServe's router.
const NO_ROUTE: &str = "None of the routes matched with the switch condition";

/// The cause where a condition looks at an answer that is no JSON. Source: KServe's router.
const NO_JSON: &str = "invalid response";

/// An answer of a step, of a node or of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Its status of HTTP.
    pub status: u16,
    /// Its body.
    pub body: Bytes,
}

impl Reply {
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

/// What a graph needs of its surroundings.
pub trait Services: Sync {
    /// Calls the service of a number. Dropping the future withdraws the call.
    ///
    /// # Errors
    ///
    /// There is no answer: the service cannot be reached, or does not answer in time.
    fn call(&self, service: usize, body: Bytes) -> impl Future<Output = Result<Reply, Failure>> + Send;

    /// Does work, beside the network where it takes long; none where it could not be done.
    fn work<T: Send + 'static>(
        &self,
        takes_long: bool,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Option<T>> + Send;

    /// A number from 0 to 99, each as likely as any other.
    fn percent(&self) -> u32;
}

type Running<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// Answers a request.
///
/// # Errors
///
/// There is no answer of a step that is needed, or none of a switch's conditions holds.
pub async fn run<S: Services>(graph: &Graph, services: &S, request: Bytes) -> Result<Reply, Failure> {
    run_node(graph, services, graph.root(), request).await
}

/// Boxed, since nodes call nodes.
fn run_node<'a, S: Services>(graph: &'a Graph, services: &'a S, node: usize, request: Bytes) -> Running<'a, Reply> {
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

/// The answer of a step. Whatever fails within a node that it names is 500.
async fn run_step<S: Services>(graph: &Graph, services: &S, step: &Step, request: Bytes) -> Result<Reply, Failure> {
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
async fn switched<'n, S: Services>(services: &S, node: &'n Node, request: &Bytes) -> Option<&'n Step> {
    let (takes_long, body) = (request.len() > GRAPH_AT_ONCE_BYTES, request.clone());
    let conditions: Vec<_> = node.steps.iter().map(|step| step.condition.clone()).collect();
    let first = move || {
        let holds = |condition: &Option<crate::Condition>| condition.as_ref().is_some_and(|one| one.exists(&body));
        if is_valid(&body) { conditions.iter().position(holds) } else { None }
    };
    let number = services.work(takes_long, first).await.flatten()?;
    node.steps.get(number)
}

async fn sequence<S: Services>(graph: &Graph, services: &S, node: &Node, request: Bytes) -> Result<Reply, Failure> {
    let mut last: Option<Reply> = None;
    for step in &node.steps {
        let body = match &last {
            Some(reply) if step.response => reply.body.clone(),
            _ => request.clone(),
        };
        let body = if step.map_predictions { mapped(services, body).await } else { body };
        if let Some(condition) = &step.condition {
            let answered = last.as_ref().map(|reply| reply.body.clone()).unwrap_or_default();
            let (takes_long, condition) = (answered.len() > GRAPH_AT_ONCE_BYTES, condition.clone());
            let look = move || is_valid(&answered).then(|| condition.exists(&answered));
            match services.work(takes_long, look).await.flatten() {
                None => return Err(Failure::new(NO_JSON)),
                Some(false) => return Ok(Reply { status: 200, ..last.unwrap_or_else(nothing) }),
                Some(true) => {}
            }
        }
        let reply = run_step(graph, services, step, body).await?;
        if step.hard && !reply.is_success() {
            return Ok(reply);
        }
        last = Some(reply);
    }
    Ok(last.unwrap_or_else(nothing))
}

/// What a sequence without an answer would answer: a graph has no such sequence.
fn nothing() -> Reply {
    Reply { status: 200, body: Bytes::new() }
}

async fn mapped<S: Services>(services: &S, body: Bytes) -> Bytes {
    let map = {
        let body = body.clone();
        move || instances_of(&body)
    };
    let mapped = services.work(body.len() > GRAPH_AT_ONCE_BYTES, map).await.flatten();
    mapped.map_or(body, Bytes::from)
}

/// What a part of an ensemble has come to.
enum Part<'a> {
    Runs(Running<'a, Reply>),
    /// The answer, with its body as Go writes it.
    Done(Reply),
}

async fn ensemble<S: Services>(graph: &Graph, services: &S, node: &Node, request: Bytes) -> Result<Reply, Failure> {
    let parts = node.steps.iter().map(|step| {
        let request = request.clone();
        Part::Runs(Box::pin(async move {
            let reply = run_step(graph, services, step, request).await?;
            let written = {
                let body = reply.body.clone();
                services.work(body.len() > GRAPH_AT_ONCE_BYTES, move || object_text(&body)).await
            };
            let body = written.ok_or_else(|| Failure::new("the answer could not be read"))?;
            Ok(Reply { body: body.map_err(Failure::new)?.into(), ..reply })
        }))
    });
    let mut parts: Vec<Part<'_>> = parts.collect();
    let mut first = 0;
    let failed = poll_fn(|cx| {
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
    if let Some(reply) = failed.await? {
        return Ok(reply);
    }
    let answers = node.steps.iter().zip(&parts).filter_map(|(step, part)| match part {
        Part::Done(reply) => Some((step.key.as_str(), &reply.body)),
        Part::Runs(_) => None,
    });
    Ok(Reply { status: 200, body: merged(answers).into() })
}

/// Lets all parts go on; the failure of one, where one has failed.
fn poll_parts(parts: &mut [Part<'_>], cx: &mut Context<'_>) -> Option<Failure> {
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

/// An object of the answers, in the order of their keys; of equal keys the last counts.
fn merged<'a>(answers: impl Iterator<Item = (&'a str, &'a Bytes)>) -> Vec<u8> {
    let sorted: std::collections::BTreeMap<&str, &Bytes> = answers.collect();
    let mut text = vec![b'{'];
    for (key, body) in sorted {
        if text.len() > 1 {
            text.push(b',');
        }
        text.extend_from_slice(quoted(key).as_bytes());
        text.push(b':');
        text.extend_from_slice(body);
    }
    text.push(b'}');
    text
}

#[cfg(test)]
mod tests;
