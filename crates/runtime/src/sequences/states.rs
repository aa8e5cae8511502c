//! Tensors that the server keeps for a model from one request of a sequence to the next.

#![allow(clippy::disallowed_methods, reason = "initial states are read while a model loads")]

use std::fs;
use std::path::Path;

use alipes_engine::EngineError;
use alipes_protocol::{Datatype, Shape, shape};
use alipes_request::visit::StateTensor;
use alipes_spec::{ModelSpec, StateSpec};

/// The states of a model's sequences.
#[derive(Debug)]
pub struct States {
    /// In the configuration's order.
    pub list: Vec<StatePort>,
}

/// One of them.
#[derive(Debug)]
pub struct StatePort {
    /// Name of the input that receives it.
    pub input: String,
    /// Name of the output that renews it.
    pub output: String,
    /// Its element type.
    pub datatype: Datatype,
    /// Its sizes, with the batch dimension where the model batches; -1 stands for any.
    pub shape: Shape,
    /// Position of that output: among those of the configuration where it is one of them, else behind them.
    pub output_index: usize,
    /// What it is when a sequence begins.
    pub initial: StateTensor,
}

impl States {
    /// As the specification says.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or is too short.
    pub fn new(model: &ModelSpec, states: &[StateSpec], batches: bool) -> Result<States, EngineError> {
        let mut behind = model.outputs.len()..;
        let list = states.iter().map(|state| {
            let known = model.outputs.iter().position(|port| port.name == state.output);
            Ok(StatePort {
                input: state.input.clone(),
                output: state.output.clone(),
                datatype: state.datatype,
                shape: with_batch(&state.dims, batches),
                output_index: known.or_else(|| behind.next()).unwrap_or_default(),
                initial: initial(state, batches)?,
            })
        });
        Ok(States { list: list.collect::<Result<_, EngineError>>()? })
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The state that an output renews, by its position in the list.
    pub fn renewed_by(&self, output_index: usize) -> Option<usize> {
        self.list.iter().position(|state| state.output_index == output_index)
    }
}

/// Sizes of what is kept for one sequence, which has one row.
fn with_batch(sizes: &[i64], batches: bool) -> Shape {
    let batch: &[i64] = if batches { &[1] } else { &[] };
    batch.iter().chain(sizes).copied().collect()
}

fn initial(state: &StateSpec, batches: bool) -> Result<StateTensor, EngineError> {
    let shape = with_batch(&state.initial_dims, batches);
    let count = shape::element_count(&shape);
    // An empty string takes four bytes: its length.
    let bytes = count.and_then(|count| count.checked_mul(state.datatype.size().unwrap_or(4)));
    let Some(bytes) = bytes.filter(|&bytes| bytes <= isize::MAX as usize) else {
        return Err(EngineError::invalid(format!("the initial state for '{}' is too large", state.input)));
    };
    let data = match &state.initial_file {
        None => vec![0; bytes],
        Some(path) => read(state, Path::new(path), bytes)?,
    };
    Ok(StateTensor { shape, data: data.into() })
}

fn read(state: &StateSpec, path: &Path, expected: usize) -> Result<Vec<u8>, EngineError> {
    let mut data = fs::read(path)
        .map_err(|error| EngineError::internal(format!("failed to read file {}: {error}", path.display())))?;
    if state.datatype != Datatype::Bytes {
        if data.len() < expected {
            // The missing space is Triton's.
            return Err(EngineError::invalid(format!(
                "initial_state setting expects {expected} bytes, but the data provided from {}only has {} bytes.",
                path.file_name().unwrap_or_default().to_string_lossy(),
                data.len()
            )));
        }
        data.truncate(expected);
    }
    Ok(data)
}

/// The states of the sequences of one instance, by slot.
#[derive(Debug, Default)]
pub struct StateTable {
    slots: Vec<Option<Box<[StateTensor]>>>,
}

impl StateTable {
    /// The state of a slot's sequence; its initial state where none is stored.
    pub fn get<'a>(&'a self, states: &'a States, slot: usize, state: usize) -> &'a StateTensor {
        let tensors = self.slots.get(slot).and_then(Option::as_ref);
        tensors.map_or(&states.list[state].initial, |tensors| &tensors[state])
    }

    /// Renews a state.
    pub fn set(&mut self, states: &States, slot: usize, state: usize, tensor: StateTensor) {
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || None);
        }
        let begin = || states.list.iter().map(|state| state.initial.clone()).collect();
        self.slots[slot].get_or_insert_with(begin)[state] = tensor;
    }

    /// A sequence begins in a slot, or has ended there.
    pub fn clear(&mut self, slot: usize) {
        if let Some(tensors) = self.slots.get_mut(slot) {
            *tensors = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn state(datatype: Datatype, initial_dims: &[i64], initial_file: Option<String>) -> StateSpec {
        let (input, output) = ("OLD".to_owned(), "NEW".to_owned());
        StateSpec {
            input,
            output,
            datatype,
            dims: initial_dims.to_vec(),
            initial_dims: initial_dims.to_vec(),
            initial_file,
        }
    }

    #[test]
    fn a_sequence_begins_with_zeros_of_the_states_size() {
        let tensor = initial(&state(Datatype::Fp32, &[2, 3], None), true).unwrap();
        assert_eq!((&tensor.shape[..], tensor.data.len()), (&[1, 2, 3][..], 24));
        let tensor = initial(&state(Datatype::Bytes, &[2], None), false).unwrap();
        assert_eq!((&tensor.shape[..], &tensor.data[..]), (&[2][..], &[0; 8][..]));
    }

    #[test]
    fn a_state_larger_than_memory_is_refused() {
        let error = initial(&state(Datatype::Fp64, &[i64::MAX, 2], None), true).unwrap_err();
        assert_eq!(error.message, "the initial state for 'OLD' is too large");
    }

    #[test]
    fn a_slot_has_its_own_states_until_it_is_cleared() {
        let port = StatePort {
            input: "OLD".to_owned(),
            output: "NEW".to_owned(),
            datatype: Datatype::Uint8,
            shape: Shape::from_slice(&[1]),
            output_index: 3,
            initial: StateTensor { shape: Shape::from_slice(&[1]), data: Bytes::from_static(&[9]) },
        };
        let states = States { list: vec![port] };
        assert_eq!((states.renewed_by(3), states.renewed_by(0)), (Some(0), None));
        let mut table = StateTable::default();
        let tensor = StateTensor { shape: Shape::from_slice(&[1]), data: Bytes::from_static(&[1]) };
        table.set(&states, 2, 0, tensor.clone());
        assert_eq!(table.get(&states, 2, 0), &tensor);
        assert_eq!(table.get(&states, 1, 0).data[..], [9]);
        table.clear(2);
        assert_eq!(table.get(&states, 2, 0).data[..], [9]);
    }
}
