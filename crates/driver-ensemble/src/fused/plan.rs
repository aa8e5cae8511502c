//! Whether an ensemble's models let a batch go through all of them at once, and how it goes.

use std::borrow::Cow;
use std::sync::Arc;

use alipes_runtime::model::{ModelVersion, policy};
use alipes_scheduler::ensemble::Graph;
use alipes_spec::{EngineSpec, ModelSpec, NativeStep, Port, Scheduling};

use super::super::driver::ensemble_of;
use super::super::{Ensemble, Step};

/// Most versions that are looked at, as an ensemble of ensembles may have very many.
const MAX_PARTS: usize = 64;

/// The versions that steps call, each followed by those that its own steps call.
pub type Parts<'a> = Cow<'a, [Arc<ModelVersion>]>;

/// A batch's way through an ensemble.
pub struct Plan {
    /// How many tensors there are.
    pub tensors: usize,
    /// In an order in which they can be run.
    pub steps: Vec<Planned>,
    /// How many of them, the first ones, take each request by itself: their models form no batches.
    pub alone: usize,
    /// By position of the ensemble's outputs: their tensors.
    pub outputs: Vec<usize>,
    /// Ensembles that are steps, each behind those that are steps of it.
    pub inner: Vec<Inner>,
    /// The numbers of the parts that execute.
    pub models: Vec<usize>,
}

/// A step of it.
#[derive(Clone)]
pub struct Planned {
    /// Its model's number among the ensemble's parts.
    pub member: usize,
    /// Positions of the model's inputs, ascending, and what each is fed with.
    pub inputs: Vec<(usize, Source)>,
    /// Positions of the outputs to compute, in the order in which they are asked for.
    pub wanted: Vec<usize>,
    /// The tensors that they are, likewise.
    pub makes: Vec<usize>,
}

/// An ensemble whose steps are taken as if they were the outer one's.
pub struct Inner {
    /// Its number among the parts.
    pub member: usize,
    /// The numbers of its steps in the plan.
    pub steps: Vec<usize>,
}

/// What a step is fed with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The request's own input of this position.
    Request(usize),
    /// What a step before it has made.
    Made(usize),
}

/// The parts of an ensemble with these models; none where there are too many, or one is not served.
pub fn parts_of(members: &[Arc<ModelVersion>]) -> Option<Parts<'_>> {
    if members.iter().all(|member| ensemble_of(member).is_none()) {
        return Some(Cow::Borrowed(members));
    }
    let mut parts = Vec::new();
    add(members, &mut parts)?;
    Some(Cow::Owned(parts))
}

fn add(members: &[Arc<ModelVersion>], parts: &mut Vec<Arc<ModelVersion>>) -> Option<()> {
    for member in members {
        if parts.len() == MAX_PARTS {
            return None;
        }
        parts.push(Arc::clone(member));
        if let Some(inner) = ensemble_of(member) {
            add(&inner.members().ok()?, parts)?;
        }
    }
    Some(())
}

/// The first number of a version among the parts, by which it is known.
fn number_of(parts: &[Arc<ModelVersion>], version: &Arc<ModelVersion>) -> Option<usize> {
    parts.iter().position(|part| Arc::ptr_eq(part, version))
}

impl Plan {
    /// The way; none where something asks for requests to be taken one by one, or to wait.
    pub fn of(ensemble: &Ensemble, spec: &ModelSpec, all: &[Arc<ModelVersion>]) -> Option<Plan> {
        let mut draft = Draft { all, steps: Vec::new(), inner: Vec::new(), tensors: 0 };
        let inputs: Vec<Source> = (0..spec.inputs.len()).map(Source::Request).collect();
        let outputs = draft.add(ensemble, spec, spec, &inputs)?;
        let made = |source: &Source| match source {
            Source::Made(tensor) => Some(*tensor),
            Source::Request(_) => None,
        };
        let outputs = outputs.iter().map(made).collect::<Option<Vec<_>>>()?;
        draft.finished(outputs)
    }
}

/// A plan that is being made.
struct Draft<'a> {
    all: &'a [Arc<ModelVersion>],
    steps: Vec<Planned>,
    inner: Vec<Inner>,
    tensors: usize,
}

impl Draft<'_> {
    /// Adds the steps of an ensemble, whose inputs come from there; says where its outputs come from.
    fn add(
        &mut self,
        ensemble: &Ensemble,
        spec: &ModelSpec,
        outermost: &ModelSpec,
        inputs: &[Source],
    ) -> Option<Vec<Source>> {
        let graph: &Graph = &ensemble.graph;
        let has_room = ensemble.steps.iter().all(|step| step.semaphore.is_none());
        if graph.is_decoupled() || !has_room || spec.inputs.is_empty() || !has_plain_ports(spec) {
            return None;
        }
        let members = ensemble.members().ok()?;
        let (from, to) = graph.ends();
        let mut sources: Vec<Option<Source>> = vec![None; graph.tensors()];
        // What is known of a tensor's sizes: as its maker declares them.
        let mut ports: Vec<Option<&Port>> = vec![None; graph.tensors()];
        for ((&tensor, &source), port) in from.iter().zip(inputs).zip(&spec.inputs) {
            (sources[tensor], ports[tensor]) = (Some(source), Some(port));
        }
        for number in graph.order() {
            let step = &ensemble.steps[number];
            let member = &members[step.member];
            let (takes, makes) = graph.ports(number);
            let mut wiring = Vec::with_capacity(takes.len());
            for (name, &tensor) in step.inputs.iter().zip(takes) {
                wiring.push((position(&member.spec.inputs, name)?, sources[tensor]?, ports[tensor]?));
            }
            wiring.sort_unstable_by_key(|&(position, ..)| position);
            // What the model would refuse is refused by the way step by step.
            if !wiring.iter().map(|&(position, ..)| position).eq(0..member.spec.inputs.len()) {
                return None;
            }
            let made = match ensemble_of(member) {
                Some(inner) => self.add_inner(inner, member, outermost, step, &wiring)?,
                None => self.add_step(member, outermost, step, &wiring)?,
            };
            for (&tensor, (source, position)) in makes.iter().zip(made) {
                (sources[tensor], ports[tensor]) = (Some(source), member.spec.outputs.get(position));
            }
        }
        to.iter().map(|&tensor| sources[tensor]).collect()
    }

    /// Adds a step; says of each of its outputs where it comes from, and its position.
    fn add_step(
        &mut self,
        member: &Arc<ModelVersion>,
        outermost: &ModelSpec,
        step: &Step,
        wiring: &[(usize, Source, &Port)],
    ) -> Option<Vec<(Source, usize)>> {
        let is_alone = forms_no_batches(&member.spec);
        let has_own = wiring.iter().all(|(_, source, _)| matches!(source, Source::Request(_)));
        if !is_free(member, outermost) || (is_alone && !has_own) {
            return None;
        }
        let first = self.tensors;
        self.tensors += step.outputs.len();
        let mut outputs = Vec::with_capacity(step.outputs.len());
        for (tensor, name) in (first..).zip(&step.outputs) {
            outputs.push((position(&member.spec.outputs, name)?, tensor));
        }
        let made = outputs.iter().map(|&(position, tensor)| (Source::Made(tensor), position)).collect();
        // By name, the order in which requests for such models always ask.
        let name = |position: usize| &member.spec.outputs[position].name;
        outputs.sort_unstable_by(|&(one, _), &(other, _)| name(one).cmp(name(other)));
        let (wanted, makes) = outputs.into_iter().unzip();
        let inputs = wiring.iter().map(|&(position, source, _)| (position, source)).collect();
        self.steps.push(Planned { member: number_of(self.all, member)?, inputs, wanted, makes });
        Some(made)
    }

    /// Adds the steps of an ensemble that is a step; says of its outputs what `add_step` does.
    fn add_inner(
        &mut self,
        inner: &Ensemble,
        member: &Arc<ModelVersion>,
        outermost: &ModelSpec,
        step: &Step,
        wiring: &[(usize, Source, &Port)],
    ) -> Option<Vec<(Source, usize)>> {
        let spec = &member.spec;
        let same = |(&(position, _, from), to): (&(usize, Source, &Port), &Port)| {
            debug_assert_eq!(spec.inputs[position].name, to.name);
            from.datatype == to.datatype && from.dims == to.dims
        };
        let takes_all = inner.steps_at_once
            && (outermost.max_batch_size == 0) == (spec.max_batch_size == 0)
            && outermost.max_batch_size <= spec.max_batch_size
            && step.outputs.len() == spec.outputs.len()
            && member.cache.is_none()
            && member.limited.is_none()
            && wiring.iter().zip(&spec.inputs).all(same);
        if !takes_all {
            return None;
        }
        let before = self.steps.len();
        let inputs: Vec<Source> = wiring.iter().map(|&(_, source, _)| source).collect();
        let outputs = self.add(inner, spec, outermost, &inputs)?;
        let steps = (before..self.steps.len()).collect();
        self.inner.push(Inner { member: number_of(self.all, member)?, steps });
        let made = |name| position(&spec.outputs, name).map(|position| (outputs[position], position));
        step.outputs.iter().map(|name| made(name)).collect()
    }

    /// The plan, with the steps in front that take each request by itself.
    fn finished(mut self, outputs: Vec<usize>) -> Option<Plan> {
        let is_alone = |&step: &usize| forms_no_batches(&self.all[self.steps[step].member].spec);
        let (first, then): (Vec<usize>, Vec<usize>) = (0..self.steps.len()).partition(is_alone);
        let order: Vec<usize> = first.iter().chain(&then).copied().collect();
        for inner in &mut self.inner {
            inner.steps = (0..order.len()).filter(|&at| inner.steps.contains(&order[at])).collect();
        }
        let steps: Vec<Planned> = order.iter().map(|&step| self.steps[step].clone()).collect();
        let mut models: Vec<usize> = steps.iter().map(|step| step.member).collect();
        models.sort_unstable();
        models.dedup();
        // A batch goes through something together.
        (!then.is_empty() || first.is_empty()).then_some(Plan {
            tensors: self.tensors,
            steps,
            alone: first.len(),
            outputs,
            inner: self.inner,
            models,
        })
    }
}

fn position(ports: &[Port], name: &str) -> Option<usize> {
    ports.iter().position(|port| port.name == name)
}

/// Whether a model that could take several requests at once takes each by itself.
fn forms_no_batches(spec: &ModelSpec) -> bool {
    matches!(spec.scheduling, Scheduling::Direct {}) && spec.max_batch_size > 0
}

/// Whether a model takes any batch of the ensemble's at once, or each of its requests, when an instance is free.
fn is_free(member: &ModelVersion, ensemble: &ModelSpec) -> bool {
    let spec = &member.spec;
    let most = ensemble.max_batch_size;
    let takes_batches = (most == 0) == (spec.max_batch_size == 0)
        && most <= spec.max_batch_size
        && match &spec.scheduling {
            Scheduling::Direct {} => true,
            Scheduling::Dynamic(dynamic) => {
                policy::is_plain(dynamic)
                    && !policy::keeps_order(&spec.scheduling)
                    && dynamic.max_queue_delay_us == 0
                    && dynamic.preferred_batch_sizes.iter().all(|&size| size == spec.max_batch_size)
            }
            Scheduling::Sequence(_) => false,
        };
    let is_alone = matches!(spec.scheduling, Scheduling::Direct {});
    takes_batches
        && (is_alone || !refuses_rows(spec))
        && member.driver.local_instances().is_some()
        && !spec.decoupled
        && member.cache.is_none()
        && member.limited.is_none()
        && member.layout.is_none()
        && has_plain_ports(spec)
}

/// Whether a model may refuse a row of a batch, which fails the request of that row alone.
fn refuses_rows(spec: &ModelSpec) -> bool {
    let EngineSpec::Native(native) = &spec.engine else { return false };
    matches!(native.step, NativeStep::Picture(_) | NativeStep::Tokenizer(_) | NativeStep::Detokenizer(_))
}

/// Whether shapes are what they seem, and every request has every input.
fn has_plain_ports(spec: &ModelSpec) -> bool {
    let is_plain = |port: &Port| port.reshape.is_none();
    let is_fixed = |port: &Port| !port.optional && !port.allow_ragged_batch;
    spec.inputs.iter().all(|port| is_plain(port) && is_fixed(port)) && spec.outputs.iter().all(is_plain)
}
