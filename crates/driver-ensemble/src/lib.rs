//! Ensembles: models that answer a request together, step by step, without a byte leaving the server in between.
//!
//! What may be called when is decided by [`alipes_scheduler::ensemble`]; here the steps are called and the caller is
//! answered. A run has no thread and no task: the thread that brings the answer of a step takes the run on from there.
//!
//! Where all steps are quick models of this process, whose instances are free, no run is needed: a batch of requests
//! goes through all of them at once.
//!
//! - `fused`: such batches.
//! - `run`: the mailbox of one request's run, which lets one thread at a time drive it.
//! - `run_driver`: calls the next steps when a step has answered, or answers the caller.
//! - `semaphore`: limits the calls of a step that are in flight at a time.
//! - `step`: from tensors to a request for a step, and from its response to tensors.

#![forbid(unsafe_code)]

mod driver;
mod fused;
mod run;
mod run_driver;
mod semaphore;
mod step;

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Instant;

use alipes_protocol::limits::ENSEMBLE_STEP_TIMEOUT;
use alipes_protocol::{Code, CorrelationId, InferError, RequestedOutput, SequenceInfo};
use alipes_runtime::context::Context;
use alipes_runtime::executor::alarm;
use alipes_runtime::model::ModelVersion;
use alipes_runtime::model::driver::Readiness;
use alipes_scheduler::ensemble::{Graph, GraphError, StepOrder, StepShape, Ticket};
use alipes_spec::{EnsembleSpec, EnsembleSteps, ModelSpec, StepSpec};
use alipes_stats::events::Event;
use compact_str::CompactString;
pub use driver::EnsembleFactory;
use fused::Fusing;
use parking_lot::Mutex;
use run::Run;
use semaphore::{Overdue, Semaphore};
use smallvec::SmallVec;

/// The versions that a request's steps are called with, by the number of their member. Held for as long as it runs.
type Members = SmallVec<[Arc<ModelVersion>; 4]>;

/// The steps of one version of an ensemble.
pub struct Ensemble {
    context: Weak<Context>,
    /// Where its models are looked for first.
    namespace: String,
    graph: Arc<Graph>,
    steps: Vec<Step>,
    members: Vec<Member>,
    /// By step: its number among those that follow another one.
    later: Vec<Option<usize>>,
    /// The order of the requests of a sequence at those of them that keep a state.
    step_order: Mutex<StepOrder<CorrelationId, Weak<Run>>>,
    fusing: Fusing,
    /// Whether a batch may go through all steps at once.
    steps_at_once: bool,
}

/// A model that some steps call.
#[derive(PartialEq, Eq)]
struct Member {
    name: String,
    /// None for the highest there is when a request arrives.
    version: Option<i64>,
}

/// One step.
struct Step {
    member: usize,
    decoupled: bool,
    /// None where the number of calls is not limited.
    semaphore: Option<Arc<Semaphore>>,
    /// The model's inputs, in the order of the step's tensors.
    inputs: Vec<CompactString>,
    /// Its outputs, likewise, and as they are asked for.
    outputs: Vec<CompactString>,
    requested: Vec<RequestedOutput>,
}

impl Ensemble {
    /// The steps that a specification names.
    ///
    /// # Errors
    ///
    /// They do not fit together. The control plane has checked that already, so that its texts can name more.
    pub fn new(spec: &ModelSpec, engine: &EnsembleSpec, context: &Weak<Context>) -> Result<Arc<Ensemble>, InferError> {
        let mut tensors = Tensors::default();
        let inputs = spec.inputs.iter().map(|port| tensors.number(&port.name)).collect();
        let outputs = spec.outputs.iter().map(|port| tensors.number(&port.name)).collect();
        let shapes: Vec<StepShape> = engine.steps.iter().map(|step| tensors.shape(step)).collect();
        let graph = Graph::new(tensors.0.len(), inputs, outputs, shapes)
            .map_err(|error| InferError::invalid(tensors.text(&spec.name, engine, error)))?;
        let mut members: Vec<Member> = Vec::new();
        let steps =
            engine.steps.iter().map(|step| Step::new(step, engine.max_inflight_requests, &mut members)).collect();
        let steps_at_once =
            context.upgrade().is_none_or(|context| context.config.paths.ensemble_steps == EnsembleSteps::Measured);
        let (context, namespace) = (Weak::clone(context), spec.namespace.clone());
        let mut following = 0..;
        let later: Vec<Option<usize>> =
            (0..engine.steps.len()).map(|step| graph.follows(step).then(|| following.next()).flatten()).collect();
        let step_order = Mutex::new(StepOrder::new(later.iter().flatten().count()));
        Ok(Arc::new(Ensemble {
            context,
            namespace,
            graph: Arc::new(graph),
            steps,
            members,
            later,
            step_order,
            fusing: Fusing::default(),
            steps_at_once,
        }))
    }

    /// Whether each of its models could answer now.
    fn is_ready(&self) -> bool {
        self.members().is_ok_and(|members| members.iter().all(|member| member.is_ready()))
    }

    /// Its models that are served now, each once.
    fn serving(&self) -> Vec<Arc<ModelVersion>> {
        let Some(context) = self.context.upgrade() else { return Vec::new() };
        let find = |member: &Member| context.registry.find_beside(&self.namespace, &member.name, member.version).ok();
        self.members.iter().filter_map(find).collect()
    }

    /// Requests that are under way: each holds the graph.
    fn runs(&self) -> usize {
        Arc::strong_count(&self.graph) - 1
    }

    /// Calls that wait for room at their step.
    fn held_back(&self) -> usize {
        self.steps.iter().filter_map(|step| step.semaphore.as_ref()).map(|semaphore| semaphore.waiting()).sum()
    }

    /// Lets calls go on that have waited too long for room at their step. Source: Triton waits as long, and says so.
    fn expire(&self, model: &Arc<ModelVersion>, now: Instant) {
        for step in &self.steps {
            let Some(semaphore) = &step.semaphore else { continue };
            let Overdue { calls, next } = semaphore.admit_overdue(now);
            if let (1.., Some(context)) = (calls, self.context.upgrade()) {
                let (name, member, waited) = (&model.name, &self.members[step.member].name, ENSEMBLE_STEP_TIMEOUT);
                let text = format!(
                    "ensemble '{name}': {calls} calls of '{member}' go on though max_inflight_requests of them are under way, \
                     none of which ended within {waited:?}"
                );
                context.events.push(Event::Notice { level: 0, text });
            }
            if let Some(moment) = next {
                alarm::set(model, moment);
            }
        }
    }

    /// Asks its models whether they are ready; none where none of them takes part.
    fn ask_ready(&self) -> Option<Readiness> {
        // All are asked before the first answer is waited for.
        let answers: Vec<Readiness> = self.members().ok()?.iter().filter_map(|member| member.ask_ready()).collect();
        if answers.is_empty() {
            return None;
        }
        Some(Box::pin(async {
            for answer in answers {
                if !answer.await {
                    return false;
                }
            }
            true
        }))
    }

    /// Whether one of its models keeps a state from one request of a sequence to the next.
    fn keeps_state(&self) -> bool {
        self.members().is_ok_and(|members| members.iter().any(|member| member.keeps_state()))
    }

    /// The place of a request in the line of its sequence; none where no step has to see these in their order.
    fn join(&self, members: &[Arc<ModelVersion>], sequence: &SequenceInfo) -> Option<Ticket> {
        if sequence.correlation_id == CorrelationId::Number(0) {
            return None;
        }
        let mut later = self.steps.iter().zip(&self.later).filter(|(_, later)| later.is_some());
        let needed = later.any(|(step, _)| members[step.member].keeps_state());
        needed.then(|| self.step_order.lock().join(sequence.correlation_id.clone()))
    }

    /// The versions that are called now.
    fn members(&self) -> Result<Members, InferError> {
        let context = self.context.upgrade();
        let context = context.ok_or_else(|| InferError::new(Code::Unavailable, "Server is stopping"))?;
        let find = |member: &Member| context.registry.find_beside(&self.namespace, &member.name, member.version);
        self.members.iter().map(find).collect()
    }
}

impl Step {
    fn new(spec: &StepSpec, most: u32, members: &mut Vec<Member>) -> Step {
        let member = Member { name: spec.model.clone(), version: (spec.version != -1).then_some(spec.version) };
        let known = members.iter().position(|other| *other == member);
        let number = known.unwrap_or_else(|| {
            members.push(member);
            members.len() - 1
        });
        let outputs: Vec<CompactString> = spec.outputs.keys().map(|name| name.as_str().into()).collect();
        let requested_output = |name: &CompactString| RequestedOutput { name: name.clone(), ..Default::default() };
        Step {
            member: number,
            decoupled: spec.decoupled,
            semaphore: (most > 0).then(|| Semaphore::new(most as usize)),
            inputs: spec.inputs.keys().map(|name| name.as_str().into()).collect(),
            requested: outputs.iter().map(requested_output).collect(),
            outputs,
        }
    }
}

/// The ensemble's tensors, numbered as they are met.
#[derive(Default)]
struct Tensors<'a>(HashMap<&'a str, usize>);

impl<'a> Tensors<'a> {
    fn number(&mut self, name: &'a str) -> usize {
        let next = self.0.len();
        *self.0.entry(name).or_insert(next)
    }

    fn shape(&mut self, step: &'a StepSpec) -> StepShape {
        StepShape {
            inputs: step.inputs.values().map(|tensor| self.number(tensor)).collect(),
            outputs: step.outputs.values().map(|tensor| self.number(tensor)).collect(),
            decoupled: step.decoupled,
        }
    }

    fn text(&self, ensemble: &str, engine: &EnsembleSpec, error: GraphError) -> String {
        let tensor = |number: usize| self.0.iter().find(|(_, other)| **other == number).map_or("", |(name, _)| name);
        let model = |step: usize| engine.steps.get(step).map_or("", |step| &step.model);
        let what = match error {
            GraphError::UnknownTensor(number) => format!("there is no tensor {number}"),
            GraphError::MadeTwice(number) => format!("tensor '{}' is written more than once", tensor(number)),
            GraphError::NoInput(step) => format!("step {step} of model '{}' has no input", model(step)),
            GraphError::NeverCalled(step) => {
                format!("step {step} of model '{}' takes a tensor that no step before it writes", model(step))
            }
            GraphError::NeverMade(number) => format!("output '{}' is not written", tensor(number)),
            GraphError::MixedScopes(step) => {
                format!("step of model '{}' receives inputs originated from different decoupled models", model(step))
            }
            GraphError::MixedOutputs => "the outputs originate from different decoupled models".to_owned(),
        };
        format!("in ensemble {ensemble}, {what}")
    }
}
