//! What a model gets with a request of a sequence besides its tensors: control inputs, and the state that the server
//! keeps for the sequence.
//!
//! - `controls`: inputs that say that a sequence begins, ends, is there, and which it is.
//! - `states`: tensors that the model gave with one request and gets back with the next.
//! - `rows`: the batch of a model that runs in this process, which may have rows without a request.
//! - `visit`: states that are taken and put between requests; `checkpoint` is how they travel.

mod checkpoint;
mod controls;
pub mod rows;
mod states;
pub mod visit;

use std::time::Duration;

use alipes_engine::EngineError;
use alipes_engine::onnxruntime::DeclaredPort;
use alipes_protocol::{Datatype, Shape};
use alipes_request::check::{Checked, CheckedInput, RequestContext, Terms};
use alipes_request::responder::Responder;
use alipes_scheduler::sequence::{SequencePolicy, StartThreshold, Strategy};
use alipes_scheduler::{DynamicPolicy, SlotId, Work};
use alipes_spec::{ModelSpec, SequenceSpec, StrategySpec};
use bytes::Bytes;
use smallvec::SmallVec;

pub use controls::{Control, Controls, Standing};
pub use states::{StatePort, StateTable, States};

pub use alipes_request::visit::{StateTensor, Visit};

use crate::model::{Pending, PendingRequest};

/// The controls and the states of a model version's sequences.
#[derive(Debug)]
pub struct Sequences {
    /// Where a sequence stands.
    pub controls: Controls,
    /// What is kept for it.
    pub states: States,
    /// Each sequence has a row of the batch, so that a batch may have rows without a request.
    pub has_rows: bool,
    /// A request without a sequence is one of its own.
    pub iterative: bool,
}

impl Sequences {
    /// What the specification says.
    ///
    /// # Errors
    ///
    /// A file that holds an initial state cannot be read, or is too short.
    pub fn new(model: &ModelSpec, spec: &SequenceSpec) -> Result<Sequences, EngineError> {
        let batches = model.max_batch_size > 0;
        Ok(Sequences {
            controls: Controls::new(&spec.controls, batches),
            states: States::new(model, &spec.states, batches)?,
            has_rows: batches && matches!(spec.strategy, StrategySpec::Direct { .. }),
            iterative: spec.iterative,
        })
    }

    /// Puts a filler into each row of a batch, up to the last that has a request, whose sequence has none now: a copy
    /// of the first request with nothing in it.
    pub fn fill_rows(&self, model: &ModelSpec, batch: &mut Vec<Pending>) {
        let rows = batch.last().map_or(0, |last| slot(last.slot_id()) + 1);
        if !self.has_rows || rows == batch.len() {
            return;
        }
        let fillers: Vec<Pending> = (batch.len()..rows).map(|_| filler(model, &batch[0])).collect();
        let mut requests = std::mem::take(batch).into_iter().peekable();
        let mut fillers = fillers.into_iter();
        for row in 0..rows {
            batch.extend(requests.next_if(|request| slot(request.slot_id()) == row).or_else(|| fillers.next()));
        }
    }

    /// What the model is given with a request beside its inputs: controls, then states.
    pub fn further_inputs(&self, pending: &Pending, table: &mut StateTable) -> SmallVec<[Further<'_>; 4]> {
        let slot = slot(pending.slot_id());
        let is_filler = pending.is_filler();
        if pending.sequence().start {
            table.clear(slot);
        }
        let standing = if is_filler { Standing::Empty } else { Standing::Ready(pending.sequence()) };
        let controls = self.controls.list.iter().map(|control| Further {
            name: &control.name,
            datatype: control.datatype,
            shape: self.controls.shape.clone(),
            data: pending
                .override_of(&control.name)
                .map_or_else(|| control.data(standing), |tensor| tensor.data.clone()),
        });
        let states = self.states.list.iter().enumerate().map(|(state, port)| {
            let stored = || if is_filler { &port.initial } else { table.get(&self.states, slot, state) };
            let held = pending.override_of(&port.input).unwrap_or_else(stored);
            Further { name: &port.input, datatype: port.datatype, shape: held.shape.clone(), data: held.data.clone() }
        });
        controls.chain(states).collect()
    }

    /// Inputs and outputs that the model has beyond those that requests know of.
    pub fn further_ports(spec: &SequenceSpec, outputs: &[alipes_spec::Port]) -> FurtherPorts {
        let port =
            |name: &str, datatype, dims: &[i64]| FurtherPort { name: name.to_owned(), datatype, dims: dims.into() };
        let controls = spec.controls.iter().map(|control| port(&control.name, control.datatype, &[1]));
        let states = spec.states.iter().map(|state| port(&state.input, state.datatype, &state.dims));
        let hidden = spec.states.iter().filter(|state| !outputs.iter().any(|port| port.name == state.output));
        FurtherPorts {
            inputs: controls.chain(states).collect(),
            outputs: hidden.map(|state| port(&state.output, state.datatype, &state.dims)).collect(),
        }
    }
}

/// Inputs and outputs that only the server and the model know of, behind those of the configuration.
#[derive(Debug, Default)]
pub struct FurtherPorts {
    /// Controls, then states.
    pub inputs: Vec<FurtherPort>,
    /// States that are no outputs to callers.
    pub outputs: Vec<FurtherPort>,
}

/// One of them.
#[derive(Debug)]
pub struct FurtherPort {
    name: String,
    datatype: Datatype,
    dims: Shape,
}

impl FurtherPort {
    /// The form that engines take.
    pub fn declared(&self) -> DeclaredPort<'_> {
        DeclaredPort { name: &self.name, datatype: self.datatype, dims: &self.dims, optional: false, ragged: false }
    }
}

/// A tensor that a model is given besides those of its request.
#[derive(Clone, Debug)]
pub struct Further<'a> {
    /// Its name.
    pub name: &'a str,
    /// Element type.
    pub datatype: Datatype,
    /// Sizes, with the batch dimension where the model batches.
    pub shape: Shape,
    /// Row-major bytes.
    pub data: Bytes,
}

/// A request that only fills a row: as large as another one, with zeros and empty strings.
fn filler(model: &ModelSpec, shown: &Pending) -> Pending {
    let inputs = shown.checked.inputs.iter().map(|input| {
        let size = model.inputs[input.index].datatype.size();
        let empty = || 4 * alipes_protocol::shape::element_count(&input.shape).unwrap_or(0);
        let len = if size.is_some() { input.data.len() } else { empty() };
        CheckedInput { index: input.index, shape: input.shape.clone(), data: vec![0; len].into() }
    });
    let context = RequestContext { is_filler: true, ..RequestContext::default() };
    let checked = Checked {
        inputs: inputs.collect(),
        outputs: shown.checked.outputs.clone(),
        rows: 1,
        key: shown.checked.key,
        terms: Terms::default(),
        is_call: false,
        context: Some(Box::new(context)),
    };
    PendingRequest::alone(checked, shown.arrived, Responder::nobody())
}

/// How the queue of a model schedules sequences.
pub fn policy(model: &ModelSpec, spec: &SequenceSpec) -> SequencePolicy {
    let strategy = match &spec.strategy {
        StrategySpec::Direct { max_queue_delay_us, minimum_slot_utilization } => Strategy::Direct {
            slots: model.max_batch_size,
            max_queue_delay: Duration::from_micros(*max_queue_delay_us),
            minimum_slot_utilization: *minimum_slot_utilization,
        },
        StrategySpec::Oldest { max_candidate_sequences, preferred_batch_sizes, max_queue_delay_us } => {
            Strategy::Oldest {
                max_candidate_sequences: *max_candidate_sequences,
                batching: DynamicPolicy {
                    max_batch_size: model.max_batch_size,
                    preferred_batch_sizes: preferred_batch_sizes.clone(),
                    max_queue_delay: Duration::from_micros(*max_queue_delay_us),
                    held_until: spec.held_until,
                    ..DynamicPolicy::default()
                },
            }
        }
    };
    // As in Triton, the backlog matters only where something is held at all, and with `oldest` it does not: there the
    // line of those that are next is held.
    let hold = match &spec.strategy {
        StrategySpec::Direct { .. } if spec.held_until > 0 => {
            StartThreshold { in_slots: spec.held_until, backlog: spec.held_until_backlog }
        }
        _ => StartThreshold::default(),
    };
    SequencePolicy { strategy, max_idle: Duration::from_micros(spec.max_idle_us), hold }
}

/// The slot of an instance as an index.
pub fn slot(slot_id: SlotId) -> usize {
    slot_id.slot as usize
}
