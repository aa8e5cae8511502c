//! The states of a sequence as bytes, so that it can go on elsewhere.
//!
//! Eight bytes, `ALIPSTA1`, the number of states, then each state. All numbers are little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 4, n | length of the name of the input that receives the state, and the name |
//! | 8 | the datatype, such as `FP32`, followed by zeros |
//! | 4, 8 each | the number of sizes, and the sizes |
//! | 8, n | bytes of the state, and the bytes as requests carry them |

#[cfg(test)]
mod fuzz;

use alipes_engine::EngineError;
use alipes_protocol::codec::elements;
use alipes_protocol::limits::MAX_DIMENSIONS;
use alipes_protocol::{Datatype, Shape, shape};
use alipes_request::visit::StateTensor;
use bytes::Bytes;

use super::states::{StatePort, States};

const MAGIC: &[u8; 8] = b"ALIPSTA1";

/// The part of a wrong name that an error quotes, in bytes.
const SHOWN_BYTES: usize = 100;

impl States {
    /// What is kept for a sequence, in the order of the configuration, as bytes.
    pub fn to_bytes(&self, held: &[&StateTensor]) -> Bytes {
        let mut bytes = Vec::with_capacity(64 * held.len() + held.iter().map(|one| one.data.len()).sum::<usize>());
        bytes.extend_from_slice(MAGIC);
        put_count(&mut bytes, self.list.len());
        for (port, tensor) in self.list.iter().zip(held) {
            put_count(&mut bytes, port.input.len());
            bytes.extend_from_slice(port.input.as_bytes());
            bytes.extend_from_slice(&datatype_field(port.datatype));
            put_count(&mut bytes, tensor.shape.len());
            tensor.shape.iter().for_each(|size| bytes.extend_from_slice(&size.to_le_bytes()));
            bytes.extend_from_slice(&(tensor.data.len() as u64).to_le_bytes());
            bytes.extend_from_slice(&tensor.data);
        }
        bytes.into()
    }

    /// The states that such bytes hold.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where they are none, or those of another model.
    pub fn of_bytes(&self, bytes: &[u8]) -> Result<Box<[StateTensor]>, EngineError> {
        let mut rest = bytes;
        if take(&mut rest, MAGIC.len()) != Some(MAGIC) {
            return Err(EngineError::invalid(format!(
                "{} bytes that do not begin with {} are no states of a sequence",
                bytes.len(),
                String::from_utf8_lossy(MAGIC)
            )));
        }
        let cut_off = || EngineError::invalid(format!("the states end in their midst, after {} bytes", bytes.len()));
        let count = take_count(&mut rest).ok_or_else(cut_off)?;
        if count != self.list.len() {
            let expected = self.list.len();
            return Err(EngineError::invalid(format!("there are {count} states, the model has {expected}")));
        }
        let tensors = self.list.iter().map(|port| port.read(take_state(&mut rest).ok_or_else(cut_off)?));
        let tensors = tensors.collect::<Result<Box<[StateTensor]>, EngineError>>()?;
        if !rest.is_empty() {
            return Err(EngineError::invalid(format!("{} bytes follow the last state", rest.len())));
        }
        Ok(tensors)
    }
}

/// A state as it was read, which may be anything.
struct Found<'a> {
    name: &'a [u8],
    datatype: &'a [u8],
    /// Eight bytes each.
    sizes: &'a [u8],
    data: &'a [u8],
}

impl StatePort {
    /// The state, where it fits the model: an engine trusts the sizes that it gets.
    fn read(&self, found: Found<'_>) -> Result<StateTensor, EngineError> {
        let Found { name, datatype, sizes, data } = found;
        let expected = datatype_field(self.datatype);
        if name != self.input.as_bytes() || datatype != expected {
            let seen = [name, datatype].map(shown);
            return Err(EngineError::invalid(format!(
                "there is a state '{}' of {}, expected '{}' of {}",
                seen[0], seen[1], self.input, self.datatype
            )));
        }
        if sizes.len() > 8 * MAX_DIMENSIONS {
            let (name, rank) = (&self.input, sizes.len() / 8);
            let text = format!("state '{name}' has {rank} dimensions, expected at most {MAX_DIMENSIONS}");
            return Err(EngineError::invalid(text));
        }
        let shape: Shape = sizes.chunks_exact(8).map(size).collect();
        let fits = shape.len() == self.shape.len()
            && shape.iter().zip(&self.shape).all(|(&size, &declared)| size >= 0 && (declared < 0 || size == declared));
        if !fits {
            return Err(EngineError::invalid(format!(
                "state '{}' has shape {}, expected {}",
                self.input,
                shape::text(&shape),
                shape::text(&self.shape)
            )));
        }
        let found = match self.datatype.size() {
            Some(size) => Some(data.len()).filter(|len| len % size == 0).map(|len| len / size),
            None => elements::count(data).ok(),
        };
        if found.is_none() || found != shape::element_count(&shape) {
            return Err(EngineError::invalid(format!(
                "state '{}' of shape {} has {} bytes, which are not as many elements",
                self.input,
                shape::text(&shape),
                data.len()
            )));
        }
        Ok(StateTensor { shape, data: Bytes::copy_from_slice(data) })
    }
}

fn put_count(bytes: &mut Vec<u8>, count: usize) {
    // Names, ranks and numbers of states come from a configuration, and are small.
    bytes.extend_from_slice(&(count as u32).to_le_bytes());
}

fn datatype_field(datatype: Datatype) -> [u8; 8] {
    let (mut field, text) = ([0; 8], datatype.to_string());
    field[..text.len()].copy_from_slice(text.as_bytes());
    field
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (state, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(state)
}

fn take_count(rest: &mut &[u8]) -> Option<usize> {
    take(rest, 4)?.try_into().ok().map(|bytes| u32::from_le_bytes(bytes) as usize)
}

fn take_state<'a>(rest: &mut &'a [u8]) -> Option<Found<'a>> {
    let length = take_count(rest)?;
    let name = take(rest, length)?;
    let datatype = take(rest, 8)?;
    let rank = take_count(rest)?;
    let sizes = take(rest, rank.checked_mul(8)?)?;
    let length = u64::from_le_bytes(take(rest, 8)?.try_into().ok()?);
    let data = take(rest, usize::try_from(length).ok()?)?;
    Some(Found { name, datatype, sizes, data })
}

fn size(bytes: &[u8]) -> i64 {
    bytes.iter().rev().fold(0, |size, &byte| size << 8 | u64::from(byte)) as i64
}

/// A text that anybody may have sent, for an error.
fn shown(text: &[u8]) -> String {
    let shown = &text[..text.len().min(SHOWN_BYTES)];
    String::from_utf8_lossy(shown).trim_end_matches('\0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(datatype: Datatype, shape: &[i64]) -> States {
        let port = StatePort {
            input: "OLD".to_owned(),
            output: "NEW".to_owned(),
            datatype,
            shape: shape.into(),
            output_index: 0,
            initial: StateTensor { shape: shape.into(), data: Bytes::new() },
        };
        States { list: vec![port] }
    }

    fn tensor(shape: &[i64], data: &[u8]) -> StateTensor {
        StateTensor { shape: shape.into(), data: Bytes::copy_from_slice(data) }
    }

    fn refusal(states: &States, bytes: &[u8]) -> String {
        states.of_bytes(bytes).unwrap_err().message
    }

    #[test]
    fn a_checkpoint_restores_the_states() {
        let floats = states(Datatype::Fp32, &[1, -1]);
        let one = tensor(&[1, 2], &[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(*floats.of_bytes(&floats.to_bytes(&[&one])).unwrap(), [one]);
        let texts = states(Datatype::Bytes, &[1]);
        let one = tensor(&[1], b"\x02\0\0\0ab");
        assert_eq!(*texts.of_bytes(&texts.to_bytes(&[&one])).unwrap(), [one]);
    }

    #[test]
    fn bytes_that_are_cut_off_anywhere_or_followed_by_others_are_refused() {
        let floats = states(Datatype::Fp32, &[2]);
        let whole = floats.to_bytes(&[&tensor(&[2], &[0; 8])]);
        for end in 0..whole.len() {
            assert!(floats.of_bytes(&whole[..end]).is_err(), "{end}");
        }
        let longer = [&whole[..], &[0]].concat();
        assert_eq!(refusal(&floats, &longer), "1 bytes follow the last state");
        assert_eq!(
            refusal(&floats, b"ALIPSEQ1"),
            "8 bytes that do not begin with ALIPSTA1 are no states of a sequence"
        );
        assert_eq!(refusal(&floats, &whole[..20]), "the states end in their midst, after 20 bytes");
    }

    #[test]
    fn the_states_of_another_model_are_refused() {
        let floats = states(Datatype::Fp32, &[2]);
        let of = |other: &States, tensor: &StateTensor| refusal(&floats, &other.to_bytes(&[tensor]));
        let doubles = states(Datatype::Fp64, &[2]);
        assert_eq!(of(&doubles, &tensor(&[2], &[0; 16])), "there is a state 'OLD' of FP64, expected 'OLD' of FP32");
        assert_eq!(of(&floats, &tensor(&[3], &[0; 12])), "state 'OLD' has shape [3], expected [2]");
        assert_eq!(of(&floats, &tensor(&[-2], &[0; 8])), "state 'OLD' has shape [-2], expected [2]");
        assert_eq!(
            of(&floats, &tensor(&[2], &[0; 7])),
            "state 'OLD' of shape [2] has 7 bytes, which are not as many elements"
        );
        let none = States { list: Vec::new() };
        assert_eq!(refusal(&floats, &none.to_bytes(&[])), "there are 0 states, the model has 1");
        let texts = states(Datatype::Bytes, &[1]);
        assert!(texts.of_bytes(&texts.to_bytes(&[&tensor(&[1], b"\xff\0\0\0ab")])).is_err());
    }
}
