//! Whether an ensemble's models let a batch go through all of them at once, and how it goes.

use std::sync::Arc;

use alipes_runtime::model::{ModelVersion, policy};
use alipes_scheduler::ensemble::Graph;
use alipes_spec::{ModelSpec, Port, Scheduling};

use super::super::{Ensemble, Step};

/// A batch's way through an ensemble.
pub struct Plan {
    /// How many tensors there are.
    pub tensors: usize,
    /// In an order in which they can be run.
    pub steps: Vec<Planned>,
    /// By position of the ensemble's outputs: their tensors.
    pub outputs: Vec<usize>,
}

/// A step of it.
pub struct Planned {
    /// Its model's number among the ensemble's.
    pub member: usize,
    /// Positions of the model's inputs, ascending, and what each is given.
    pub inputs: Vec<(usize, Source)>,
    /// Positions of the outputs to compute, in the order in which they are asked for.
    pub wanted: Vec<usize>,
    /// The tensors that they are, likewise.
    pub makes: Vec<usize>,
}

/// What a step is given.
#[derive(Clone, Copy)]
pub enum Source {
    /// The request's own input of this position.
    Request(usize),
    /// What a step before it has made.
    Made(usize),
}

impl Plan {
    /// The way; none where something asks for requests to be taken one by one, or to wait.
    pub fn of(ensemble: &Ensemble, spec: &ModelSpec, members: &[Arc<ModelVersion>]) -> Option<Plan> {
        let graph = &*ensemble.graph;
        let has_room = ensemble.steps.iter().all(|step| step.semaphore.is_none());
        let fit = !graph.is_decoupled()
            && has_room
            && !spec.inputs.is_empty()
            && has_plain_ports(spec)
            && members.iter().all(|member| is_free(member, spec));
        if !fit {
            return None;
        }
        let steps = graph.order().map(|number| planned(ensemble, number, members)).collect::<Option<Vec<_>>>()?;
        let (_, outputs) = graph.ends();
        let made = |tensor: &usize| steps.iter().any(|step| step.makes.contains(tensor));
        outputs.iter().all(made).then(|| Plan { tensors: graph.tensors(), outputs: outputs.to_vec(), steps })
    }
}

fn planned(ensemble: &Ensemble, number: usize, members: &[Arc<ModelVersion>]) -> Option<Planned> {
    let step: &Step = &ensemble.steps[number];
    let spec = &members[step.member].spec;
    let (takes, makes) = ensemble.graph.ports(number);
    let mut inputs = Vec::with_capacity(takes.len());
    for (name, &tensor) in step.inputs.iter().zip(takes) {
        inputs.push((position(&spec.inputs, name)?, source(&ensemble.graph, tensor)));
    }
    inputs.sort_unstable_by_key(|&(position, _)| position);
    // What the model would refuse is refused by the way step by step.
    if !inputs.iter().map(|&(position, _)| position).eq(0..spec.inputs.len()) {
        return None;
    }
    // By name, the order in which requests for such models always ask.
    let mut outputs = Vec::with_capacity(makes.len());
    for (name, &tensor) in step.outputs.iter().zip(makes) {
        outputs.push((position(&spec.outputs, name)?, tensor));
    }
    outputs.sort_unstable_by(|&(one, _), &(other, _)| spec.outputs[one].name.cmp(&spec.outputs[other].name));
    let (wanted, makes) = outputs.into_iter().unzip();
    Some(Planned { member: step.member, inputs, wanted, makes })
}

fn position(ports: &[Port], name: &str) -> Option<usize> {
    ports.iter().position(|port| port.name == name)
}

fn source(graph: &Graph, tensor: usize) -> Source {
    let (inputs, _) = graph.ends();
    match inputs.iter().position(|&input| input == tensor) {
        Some(position) => Source::Request(position),
        None => Source::Made(tensor),
    }
}

/// Whether a model takes any batch of the ensemble's at once, when an instance is free.
fn is_free(member: &ModelVersion, ensemble: &ModelSpec) -> bool {
    let spec = &member.spec;
    let takes_batches = match (&spec.scheduling, ensemble.max_batch_size) {
        (Scheduling::Direct {}, most) => most == 0 && spec.max_batch_size == 0,
        (Scheduling::Dynamic(dynamic), most) => {
            (most == 0) == (spec.max_batch_size == 0)
                && most <= spec.max_batch_size
                && policy::is_plain(dynamic)
                && !policy::keeps_order(&spec.scheduling)
                && dynamic.max_queue_delay_us == 0
                && dynamic.preferred_batch_sizes.iter().all(|&size| size == spec.max_batch_size)
        }
        (Scheduling::Sequence(_), _) => false,
    };
    takes_batches
        && member.driver.local_instances().is_some()
        && !spec.decoupled
        && member.cache.is_none()
        && member.limited.is_none()
        && member.layout.is_none()
        && has_plain_ports(spec)
}

/// Whether shapes are what they seem, and every request has every input.
fn has_plain_ports(spec: &ModelSpec) -> bool {
    let is_sized = |port: &Port| port.datatype.size().is_some() && port.reshape.is_none();
    let is_fixed = |port: &Port| !port.optional && !port.allow_ragged_batch;
    spec.inputs.iter().all(|port| is_sized(port) && is_fixed(port)) && spec.outputs.iter().all(is_sized)
}
