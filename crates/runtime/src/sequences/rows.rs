//! The batch of a model that runs in this process: the requests with what their sequences add, and rows without a
//! request where a sequence with a row of its own has none now.

use alipes_engine::batch::{Member, Split};
use alipes_engine::{EngineError, OutputTensor};
use alipes_protocol::{Datatype, Shape, shape};
use alipes_request::visit::StateTensor;
use alipes_scheduler::Work;
use alipes_spec::ModelSpec;
use bytes::Bytes;
use smallvec::SmallVec;

use super::states::StateTable;
use super::{Sequences, Standing, slot};
use crate::model::Pending;

/// What an instance keeps from one execution to the next.
#[derive(Debug, Default)]
pub struct Rows {
    /// What is kept for the sequences.
    pub(super) states: StateTable,
    /// By row of the batch: the request's position, or none.
    list: Vec<Option<usize>>,
    /// By row and control.
    controls: Vec<Bytes>,
    /// Zeros, as many as the largest input has bytes: what rows without a request hold.
    zeros: Vec<u8>,
}

/// The inputs of one row.
pub type RowMembers<'a> = SmallVec<[Member<'a>; 8]>;

impl Rows {
    /// Lays the batch out: who is in which row, and what the controls say.
    pub fn lay_out(&mut self, sequences: &Sequences, batch: &[Pending]) {
        self.list.clear();
        for (position, pending) in batch.iter().enumerate() {
            let slot = slot(pending.slot_id());
            if sequences.has_rows {
                self.list.resize(slot, None);
            }
            self.list.push(Some(position));
            if pending.sequence().start {
                self.states.clear(slot);
            }
        }
        self.controls.clear();
        for row in &self.list {
            let pending = row.map(|position| &batch[position]);
            let standing = pending.map_or(Standing::Empty, |pending| Standing::Ready(pending.sequence()));
            self.controls.extend(sequences.controls.list.iter().map(|control| {
                let brought = pending.and_then(|pending| pending.override_of(&control.name));
                brought.map_or_else(|| control.data(standing), |tensor| tensor.data.clone())
            }));
        }
        if self.list.contains(&None) {
            self.make_zeros(sequences, &batch[0]);
        }
    }

    /// Rows of the batch, with and without a request.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// The inputs of each row: those of the request, then controls, then states.
    pub fn members<'a>(
        &'a self,
        model: &'a ModelSpec,
        sequences: &'a Sequences,
        batch: &'a [Pending],
    ) -> impl Iterator<Item = RowMembers<'a>> {
        self.list.iter().enumerate().map(move |(row, position)| {
            let mut members = RowMembers::new();
            let shown = position.map_or(&batch[0], |position| &batch[position]);
            for input in &shown.checked.inputs {
                let datatype = model.inputs[input.index].datatype;
                let data = if position.is_some() { &input.data[..] } else { self.zeros(datatype, &input.shape) };
                members.push(Member { index: input.index, datatype, shape: &input.shape, data });
            }
            let mut further = model.inputs.len()..;
            let controls = &sequences.controls;
            let values = &self.controls[row * controls.list.len()..];
            for ((control, data), index) in controls.list.iter().zip(values).zip(&mut further) {
                members.push(Member { index, datatype: control.datatype, shape: &controls.shape, data });
            }
            for ((state, port), index) in sequences.states.list.iter().enumerate().zip(&mut further) {
                let tensor = self.held(sequences, shown, state);
                let data = if position.is_some() { &tensor.data[..] } else { self.zeros(port.datatype, &tensor.shape) };
                members.push(Member { index, datatype: port.datatype, shape: &tensor.shape, data });
            }
            members
        })
    }

    /// Why the rows of the batch could not be joined, where that is because of what is kept: sequences whose states
    /// have grown apart.
    pub fn differing_states(&self, sequences: &Sequences, batch: &[Pending]) -> Option<EngineError> {
        sequences.states.list.iter().enumerate().find_map(|(state, port)| {
            let tensors = batch.iter().map(|pending| self.held(sequences, pending, state));
            let mut shapes = tensors.map(|tensor| &tensor.shape);
            let first = shapes.next()?;
            let other = shapes.find(|&shape| shape != first)?;
            Some(EngineError::invalid(format!(
                "state '{}' has shape {} in one sequence of the batch and {} in another: sequences run together only while \
                 their states agree in shape; give a model whose states grow apart a max_batch_size of 0 or 1",
                port.input,
                shape::text(first),
                shape::text(other)
            )))
        })
    }

    /// Hands each request its rows of the outputs, and keeps the states.
    pub fn take(
        &mut self,
        sequences: &Sequences,
        batch: &[Pending],
        split: &mut Split<'_>,
        mut give: impl FnMut(&Pending, SmallVec<[OutputTensor; 4]>),
    ) {
        let alone = self.list.len() == 1;
        for position in &self.list {
            let pieces: SmallVec<[OutputTensor; 4]> = split.take(1).collect();
            let Some(position) = *position else { continue };
            let pending = &batch[position];
            let slot = slot(pending.slot_id());
            for piece in &pieces {
                if let Some(state) = sequences.states.renewed_by(piece.index) {
                    // A slice would keep the outputs of the whole batch for as long as this sequence says nothing.
                    let data = if alone { piece.data.clone() } else { Bytes::copy_from_slice(&piece.data) };
                    self.states.set(&sequences.states, slot, state, StateTensor { shape: piece.shape.clone(), data });
                }
            }
            if pending.sequence().end {
                self.states.clear(slot);
            }
            give(pending, pieces);
        }
    }

    /// The state with which a request is executed.
    fn held<'a>(&'a self, sequences: &'a Sequences, pending: &'a Pending, state: usize) -> &'a StateTensor {
        let brought = pending.override_of(&sequences.states.list[state].input);
        brought.unwrap_or_else(|| self.states.get(&sequences.states, slot(pending.slot_id()), state))
    }

    fn make_zeros(&mut self, sequences: &Sequences, shown: &Pending) {
        let sizes = shown.checked.inputs.iter().map(|input| (input.data.len(), &input.shape));
        let held = (0..sequences.states.list.len()).map(|state| {
            let held = self.held(sequences, shown, state);
            (held.data.len(), &held.shape)
        });
        // Strings may be shorter than the four bytes that an empty one takes.
        let room = |(len, shape): (usize, &Shape)| len.max(4 * shape::element_count(shape).unwrap_or(0));
        let largest = sizes.chain(held).map(room).max().unwrap_or(0);
        if self.zeros.len() < largest {
            self.zeros.resize(largest, 0);
        }
    }

    /// Zeros for a tensor of this shape; empty strings.
    fn zeros(&self, datatype: Datatype, shape: &[i64]) -> &[u8] {
        let count = shape::element_count(shape).unwrap_or(0);
        let len = count.saturating_mul(datatype.size().unwrap_or(4));
        &self.zeros[..len.min(self.zeros.len())]
    }
}

/// Positions of the outputs that renew states, to be computed whatever callers ask for.
pub fn add_state_outputs(sequences: &Sequences, wanted: &mut Vec<usize>) {
    for state in &sequences.states.list {
        if !wanted.contains(&state.output_index) {
            wanted.push(state.output_index);
        }
    }
}
