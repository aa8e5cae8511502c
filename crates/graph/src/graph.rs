//! A graph that can be run: its nodes lead to each other without a circle, and its conditions are read.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::limits::GRAPH_MAX_CALLS;

use crate::condition::Condition;
use crate::destination::{Destination, Url};
use crate::propagation::Propagation;
use crate::spec::{GraphSpec, NodeSpec, RouterKind, StepSpec, TargetSpec};

/// The node where requests begin. Source: KServe.
const ROOT: &str = "root";

/// What a step calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The node of this number.
    Node(usize),
    /// The service of this number.
    Service(usize),
}

/// A step of a node.
#[derive(Debug)]
pub struct Step {
    /// The key of its answer in an ensemble's: its name, or else its number.
    pub key: String,
    /// What it calls.
    pub target: Target,
    /// Whether it is sent the answer of the step before it.
    pub response: bool,
    /// Whether `predictions` become `instances`.
    pub map_predictions: bool,
    /// Its percentage of a splitter's requests.
    pub weight: u32,
    /// When it is called.
    pub condition: Option<Condition>,
    /// Whether its failure is that of its node.
    pub hard: bool,
}

/// A node.
#[derive(Debug)]
pub struct Node {
    /// How it chooses.
    pub kind: RouterKind,
    /// Its steps, in order; at least one.
    pub steps: Vec<Step>,
}

/// A graph without circles.
#[derive(Debug)]
pub struct Graph {
    /// Its name.
    pub name: String,
    /// Longest time that a request may take.
    pub timeout: Duration,
    /// Longest time that a call over HTTP may take; none where only that of the request counts.
    pub step_timeout: Option<Duration>,
    /// File of the roots that certificates of steps lead to; none for those of the system.
    pub roots: Option<String>,
    /// The headers of a request that its steps see.
    pub propagation: Propagation,
    nodes: Vec<Node>,
    root: usize,
    services: Vec<Destination>,
}

/// Why a document is no graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphFault(String);

impl fmt::Display for GraphFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for GraphFault {}

impl Graph {
    /// Reads a document.
    ///
    /// # Errors
    ///
    /// A node that is missing, empty or part of a circle, weights that are not 100 together, or more calls for one
    /// request than `GRAPH_MAX_CALLS`.
    pub fn of(spec: &GraphSpec) -> Result<Graph, GraphFault> {
        let numbers: BTreeMap<&str, usize> = spec.nodes.keys().map(String::as_str).zip(0..).collect();
        let root = *numbers.get(ROOT).ok_or_else(|| GraphFault("the graph has no node 'root'".to_owned()))?;
        let mut services = Vec::new();
        let nodes = spec.nodes.iter().map(|(name, node)| read_node(name, node, &numbers, &mut services));
        let nodes = nodes.collect::<Result<Vec<Node>, GraphFault>>()?;
        let names: Vec<&str> = spec.nodes.keys().map(String::as_str).collect();
        let mut calls = vec![Calls::Unknown; nodes.len()];
        for number in 0..nodes.len() {
            count_calls(number, &nodes, &names, &mut calls)?;
        }
        let propagation = Propagation::of(&spec.propagate).map_err(GraphFault)?;
        let (timeout, step_timeout) = (seconds(spec.timeout_s)?, spec.step_timeout_s.map(seconds).transpose()?);
        let (name, roots) = (spec.name.clone(), spec.roots.clone());
        Ok(Graph { name, timeout, step_timeout, roots, propagation, nodes, root, services })
    }

    /// The node where requests begin.
    pub fn root(&self) -> usize {
        self.root
    }

    /// A node by its number.
    pub fn node(&self, number: usize) -> &Node {
        &self.nodes[number]
    }

    /// All nodes, by number.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// What steps call that are no nodes, by number.
    pub fn services(&self) -> &[Destination] {
        &self.services
    }
}

fn read_node(
    name: &str,
    node: &NodeSpec,
    numbers: &BTreeMap<&str, usize>,
    services: &mut Vec<Destination>,
) -> Result<Node, GraphFault> {
    if node.steps.is_empty() {
        return Err(GraphFault(format!("node '{name}' has no steps")));
    }
    let weights: u64 = node.steps.iter().map(|step| u64::from(step.weight)).sum();
    if node.kind == RouterKind::Splitter && weights != 100 {
        return Err(GraphFault(format!("the weights of node '{name}' are {weights} together, expected 100")));
    }
    let steps = node.steps.iter().enumerate();
    let steps = steps.map(|(number, step)| read_step(name, number, step, numbers, services));
    Ok(Node { kind: node.kind, steps: steps.collect::<Result<_, _>>()? })
}

fn read_step(
    node: &str,
    number: usize,
    step: &StepSpec,
    numbers: &BTreeMap<&str, usize>,
    services: &mut Vec<Destination>,
) -> Result<Step, GraphFault> {
    let target = match &step.target {
        TargetSpec::Node(name) => {
            let fault =
                || GraphFault(format!("step {number} of node '{node}' names the node '{name}', which is missing"));
            Target::Node(*numbers.get(name.as_str()).ok_or_else(fault)?)
        }
        TargetSpec::Model(model) => Target::Service(number_of(Destination::Model(model.clone()), services)),
        TargetSpec::Url(url) => {
            let fault = |fault| GraphFault(format!("step {number} of node '{node}': {fault}"));
            Target::Service(number_of(Destination::Url(Url::of(url).map_err(fault)?), services))
        }
    };
    Ok(Step {
        key: if step.name.is_empty() { number.to_string() } else { step.name.clone() },
        target,
        response: step.response,
        map_predictions: step.map_predictions,
        weight: step.weight,
        condition: (!step.condition.is_empty()).then(|| Condition::of(&step.condition)),
        hard: step.hard,
    })
}

/// The number of a destination, which several steps may have.
fn number_of(destination: Destination, services: &mut Vec<Destination>) -> usize {
    services.iter().position(|known| *known == destination).unwrap_or_else(|| {
        services.push(destination);
        services.len() - 1
    })
}

fn seconds(seconds: f64) -> Result<Duration, GraphFault> {
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| GraphFault(format!("{seconds} s is no time to wait")))
}

#[derive(Clone, Copy, PartialEq)]
enum Calls {
    Unknown,
    /// It is being counted: a node that leads back to it is part of a circle.
    Open,
    Known(u64),
}

/// The most calls that a request of a node may cause.
fn count_calls(number: usize, nodes: &[Node], names: &[&str], calls: &mut [Calls]) -> Result<u64, GraphFault> {
    match calls[number] {
        Calls::Known(known) => return Ok(known),
        Calls::Open => return Err(GraphFault(format!("node '{}' leads back to itself", names[number]))),
        Calls::Unknown => calls[number] = Calls::Open,
    }
    let mut total = 0_u64;
    for step in &nodes[number].steps {
        total += match step.target {
            Target::Service(_) => 1,
            Target::Node(next) => count_calls(next, nodes, names, calls)?,
        };
        if total > GRAPH_MAX_CALLS {
            let name = names[number];
            return Err(GraphFault(format!(
                "one request of node '{name}' may cause more than {GRAPH_MAX_CALLS} calls"
            )));
        }
    }
    calls[number] = Calls::Known(total);
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(nodes: &str) -> Result<Graph, String> {
        let spec: GraphSpec =
            serde_json::from_str(&format!(r#"{{"name": "g", "timeout_s": 60, "nodes": {{{nodes}}}}}"#)).unwrap();
        Graph::of(&spec).map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_service_that_several_steps_call_has_one_number() {
        let graph = graph(
            r#""root": {"kind": "Sequence", "steps": [{"target": {"model": "a"}}, {"target": {"node": "next"}}]},
               "next": {"kind": "Ensemble", "steps": [{"target": {"model": "a"}, "name": "first"},
                                                      {"target": {"url": "http://b/"}}]}"#,
        )
        .unwrap();
        assert_eq!(graph.services().len(), 2);
        let next = graph.node(0);
        assert_eq!((next.steps[0].key.as_str(), next.steps[1].key.as_str()), ("first", "1"));
        assert_eq!(graph.node(graph.root()).steps[1].target, Target::Node(0));
    }

    #[test]
    fn what_could_not_be_run_is_no_graph() {
        let step = |target: &str| format!(r#"{{"kind": "Sequence", "steps": [{{"target": {target}}}]}}"#);
        for (nodes, fault) in [
            (format!(r#""a": {}"#, step(r#"{"model": "m"}"#)), "the graph has no node 'root'"),
            (r#""root": {"kind": "Switch", "steps": []}"#.to_owned(), "node 'root' has no steps"),
            (
                format!(r#""root": {}"#, step(r#"{"node": "x"}"#)),
                "step 0 of node 'root' names the node 'x', which is missing",
            ),
            (format!(r#""root": {}"#, step(r#"{"node": "root"}"#)), "node 'root' leads back to itself"),
            (
                format!(r#""root": {}, "a": {}"#, step(r#"{"node": "a"}"#), step(r#"{"node": "root"}"#)),
                "node 'a' leads back to itself",
            ),
            (
                r#""root": {"kind": "Splitter", "steps": [{"target": {"model": "m"}, "weight": 99}]}"#.to_owned(),
                "the weights of node 'root' are 99 together, expected 100",
            ),
        ] {
            assert_eq!(graph(&nodes).unwrap_err(), fault);
        }
    }

    #[test]
    fn nodes_that_multiply_are_bounded() {
        let ten = |target: &str| format!(r#"{{"kind": "Ensemble", "steps": [{}]}}"#, [target; 10].join(","));
        let node = |name: &str| ten(&format!(r#"{{"target": {{"node": "{name}"}}}}"#));
        let last = ten(r#"{"target": {"model": "m"}}"#);
        assert!(graph(&format!(r#""root": {}, "a": {}, "b": {last}"#, node("a"), node("b"))).is_ok());
        let more = format!(r#""root": {}, "a": {}, "b": {}, "c": {last}"#, node("a"), node("b"), node("c"));
        assert!(graph(&more).unwrap_err().contains("may cause more than 1000 calls"));
    }
}
