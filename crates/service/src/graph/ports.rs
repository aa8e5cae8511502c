//! The tensors that a graph takes and gives, as far as the models of its steps declare them.

use std::sync::Arc;

use alipes_graph::{Graph, Node, RouterKind, Step, Target};
use alipes_protocol::codec::json::DeclaredInput;
use alipes_protocol::{Datatype, Shape};
use alipes_runtime::model::ModelVersion;
use alipes_spec::{ModelSpec, Port};
use compact_str::CompactString;

use super::body::{merged_name, output_counts};
use super::tensor_graph::TensorGraph;
use crate::PortMetadata;

/// A tensor of a graph, with the batch dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GraphPort {
    pub(super) name: CompactString,
    pub(super) datatype: Datatype,
    pub(super) shape: Shape,
}

impl GraphPort {
    fn of(spec: &ModelSpec, port: &Port) -> GraphPort {
        let batch = (spec.max_batch_size > 0).then_some(-1);
        let shape = batch.into_iter().chain(port.dims.iter().copied()).collect();
        GraphPort { name: port.name.as_str().into(), datatype: port.datatype, shape }
    }
}

impl From<GraphPort> for PortMetadata {
    fn from(port: GraphPort) -> PortMetadata {
        let GraphPort { name, datatype, shape } = port;
        PortMetadata { name: name.into(), datatype: datatype.name(), shape: shape.to_vec() }
    }
}

/// Tensors of a step, of a node or of the graph; none where they are not known, or not the same for each request.
type Known = Option<Vec<GraphPort>>;

/// A graph, and the model of each of its services that is one of this server.
pub(super) struct GraphPorts<'a> {
    graph: &'a Graph,
    models: &'a [Option<Arc<ModelVersion>>],
}

impl<'a> GraphPorts<'a> {
    pub(super) fn of(graph: &'a Graph, models: &'a [Option<Arc<ModelVersion>>]) -> GraphPorts<'a> {
        GraphPorts { graph, models }
    }

    /// What a request has to have: the inputs of all steps that are sent it.
    pub(super) fn inputs(&self) -> Known {
        self.inputs_of(self.graph.node(self.graph.root()))
    }

    /// What a response has.
    pub(super) fn outputs(&self) -> Known {
        self.outputs_of(self.graph.node(self.graph.root()))
    }

    fn inputs_of(&self, node: &Node) -> Known {
        let inputs = |step: &Step| match step.target {
            Target::Node(number) => self.inputs_of(self.graph.node(number)),
            Target::Service(number) => self.declared(number, |spec| &spec.inputs),
        };
        match node.kind {
            RouterKind::Splitter | RouterKind::Switch => same(called(node).map(inputs)),
            RouterKind::Ensemble => united(node.steps.iter().map(inputs)),
            RouterKind::Sequence => {
                let sent = node.steps.iter().enumerate().filter(|(number, step)| *number == 0 || !step.response);
                united(sent.map(|(_, step)| inputs(step)))
            }
        }
    }

    fn outputs_of(&self, node: &Node) -> Known {
        let outputs = |step: &Step| match step.target {
            Target::Node(number) => self.outputs_of(self.graph.node(number)),
            Target::Service(number) => self.declared(number, |spec| &spec.outputs),
        };
        match node.kind {
            RouterKind::Splitter | RouterKind::Switch => same(called(node).map(outputs)),
            RouterKind::Ensemble => merged_ports(node.steps.iter().map(|step| Some((&*step.key, outputs(step)?)))),
            RouterKind::Sequence => {
                // It ends with its last step, or before one whose condition does not hold.
                let ends = |number: usize| node.steps.get(number + 1).is_none_or(|next| next.condition.is_some());
                let last = node.steps.iter().enumerate().filter(|(number, _)| ends(*number));
                same(last.map(|(_, step)| outputs(step)))
            }
        }
    }

    fn declared(&self, service: usize, ports: fn(&ModelSpec) -> &[Port]) -> Known {
        let spec = &self.models[service].as_ref()?.spec;
        Some(ports(spec).iter().map(|port| GraphPort::of(spec, port)).collect())
    }
}

impl TensorGraph {
    /// A reader of the inputs that the graph declares; none where they are not known.
    pub fn declared_inputs(&self) -> Option<impl Fn(&str) -> Option<DeclaredInput> + Send + use<>> {
        let models: Vec<Option<Arc<ModelVersion>>> = self.models.iter().cloned().map(Some).collect();
        let inputs = GraphPorts::of(&self.graph, &models).inputs()?;
        Some(move |name: &str| {
            let port = inputs.iter().find(|port| port.name == *name)?;
            Some(DeclaredInput { datatype: port.datatype, shape: port.shape.clone() })
        })
    }
}

/// The steps of a Splitter or a Switch that can be called at all.
fn called(node: &Node) -> impl Iterator<Item = &Step> {
    node.steps.iter().filter(|step| match node.kind {
        RouterKind::Splitter => step.weight > 0,
        _ => step.condition.is_some(),
    })
}

/// The tensors that all steps have; none where they differ.
fn same(mut all: impl Iterator<Item = Known>) -> Known {
    let first = all.next()??;
    all.all(|other| other.as_ref() == Some(&first)).then_some(first)
}

/// The tensors of all steps; none where two of them declare one name differently.
fn united(all: impl Iterator<Item = Known>) -> Known {
    let mut united: Vec<GraphPort> = Vec::new();
    for ports in all {
        for port in ports? {
            match united.iter().find(|known| known.name == port.name) {
                None => united.push(port),
                Some(known) if *known == port => {}
                Some(_) => return None,
            }
        }
    }
    Some(united)
}

/// The outputs of an ensemble's steps under the names that they have in its answer.
fn merged_ports<'a>(all: impl Iterator<Item = Option<(&'a str, Vec<GraphPort>)>>) -> Known {
    let all = all.collect::<Option<Vec<_>>>()?;
    let counts = output_counts(all.iter().flat_map(|(_, ports)| ports).map(|port| &*port.name));
    let mut merged = Vec::new();
    for (key, ports) in &all {
        let renamed = |port: &GraphPort| GraphPort { name: merged_name(key, &port.name, &counts), ..port.clone() };
        merged.extend(ports.iter().map(renamed));
    }
    Some(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(names: &[(&str, i64)]) -> Known {
        let port = |(name, size): &(&str, i64)| GraphPort {
            name: (*name).into(),
            datatype: Datatype::Fp32,
            shape: [-1, *size].into_iter().collect(),
        };
        Some(names.iter().map(port).collect())
    }

    #[test]
    fn inputs_of_steps_that_see_one_request_are_united() {
        let all = united([ports(&[("X", 2)]), ports(&[("X", 2), ("Z", 1)])].into_iter());
        assert_eq!(all, ports(&[("X", 2), ("Z", 1)]));
        assert_eq!(united([ports(&[("X", 2)]), ports(&[("X", 3)])].into_iter()), None);
        assert_eq!(united([ports(&[("X", 2)]), None].into_iter()), None);
    }

    #[test]
    fn tensors_are_known_where_every_way_has_the_same() {
        assert_eq!(same([ports(&[("Y", 2)]), ports(&[("Y", 2)])].into_iter()), ports(&[("Y", 2)]));
        assert_eq!(same([ports(&[("Y", 2)]), ports(&[("Z", 2)])].into_iter()), None);
        assert_eq!(same([None, ports(&[("Y", 2)])].into_iter()), None);
        assert_eq!(same(std::iter::empty()), None);
    }

    #[test]
    fn outputs_of_an_ensemble_have_the_names_of_its_answer() {
        let step = |key, names: &[(&str, i64)]| Some((key, ports(names)?));
        let all = [step("a", &[("Y", 2), ("V", 1)]), step("1", &[("Y", 3)])];
        assert_eq!(merged_ports(all.into_iter()), ports(&[("a.Y", 2), ("V", 1), ("1.Y", 3)]));
        assert_eq!(merged_ports([step("a", &[("Y", 2)]), None].into_iter()), None);
    }
}
