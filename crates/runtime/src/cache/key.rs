//! What makes two requests equal, and the key that stands for it.

use alipes_protocol::{CorrelationId, Parameter, SequenceInfo};
use alipes_request::check::{Checked, CheckedInput, RequestContext};
use smallvec::SmallVec;
use xxhash_rust::xxh3::Xxh3;

/// 128 bits over the version and all that its model sees of a request but the request's id, and the outputs that are
/// wanted. Two requests with one key are almost always equal, which [`StoredRequest`] then makes sure of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// All else.
    pub request: u128,
    /// Positions of the outputs, ascending.
    pub outputs: SmallVec<[usize; 4]>,
}

impl Key {
    /// The key of a request to the version that was loaded under this number. Nobody outside knows the seed, so nobody
    /// can look for requests that share a key.
    pub fn new(seed: u64, load: u64, checked: &Checked) -> Key {
        let mut hasher = Hasher(Xxh3::with_seed(seed));
        hasher.number(load);
        for CheckedInput { index, shape, data } in &checked.inputs {
            hasher.number(*index as u64);
            hasher.number(shape.len() as u64);
            shape.iter().for_each(|&size| hasher.number(size as u64));
            hasher.bytes(data);
        }
        if let Some(context) = &checked.context {
            hasher.context(context);
        }
        Key { request: hasher.0.digest128(), outputs: checked.outputs.clone() }
    }
}

/// Everything goes in with its length or at a fixed one, so that no two requests are written alike.
struct Hasher(Xxh3);

impl Hasher {
    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    fn context(&mut self, RequestContext { parameters, sequence, .. }: &RequestContext) {
        for (name, value) in parameters {
            self.bytes(name.as_bytes());
            match value {
                Parameter::Bool(value) => self.tagged(0, &[u8::from(*value)]),
                Parameter::Int64(value) => self.tagged(1, &value.to_le_bytes()),
                Parameter::Double(value) => self.tagged(2, &value.to_le_bytes()),
                Parameter::String(value) => self.tagged(3, value.as_bytes()),
            }
        }
        let SequenceInfo { correlation_id, start, end } = sequence;
        match correlation_id {
            CorrelationId::Number(id) => self.tagged(4, &id.to_le_bytes()),
            CorrelationId::Text(id) => self.tagged(5, id.as_bytes()),
        }
        self.number(u64::from(*start) | u64::from(*end) << 1);
    }

    fn tagged(&mut self, tag: u64, bytes: &[u8]) {
        self.number(tag);
        self.bytes(bytes);
    }
}

/// A request as an answer to it is kept: enough to tell it from any other that has the same key.
#[derive(Clone, Debug)]
pub struct StoredRequest {
    /// Under which number its version was loaded.
    pub load: u64,
    inputs: SmallVec<[CheckedInput; 2]>,
    parameters: Vec<(String, Parameter)>,
    sequence: SequenceInfo,
}

impl StoredRequest {
    /// What is kept of a request. Its bytes are kept as they are, so they must be nobody else's to change.
    pub fn new(load: u64, checked: &Checked) -> StoredRequest {
        let context = checked.context.as_deref();
        StoredRequest {
            load,
            inputs: checked.inputs.clone(),
            parameters: context.map(|context| context.parameters.clone()).unwrap_or_default(),
            sequence: context.map(|context| context.sequence.clone()).unwrap_or_default(),
        }
    }

    /// Whether a request to that version is the same, bit by bit.
    pub fn is(&self, load: u64, checked: &Checked) -> bool {
        let equal = |(one, other): (&CheckedInput, &CheckedInput)| {
            one.index == other.index && one.shape == other.shape && one.data == other.data
        };
        let same = match &checked.context {
            Some(context) => self.parameters == context.parameters && self.sequence == context.sequence,
            None => self.parameters.is_empty() && self.sequence == SequenceInfo::default(),
        };
        same && self.load == load
            && self.inputs.len() == checked.inputs.len()
            && self.inputs.iter().zip(&checked.inputs).all(equal)
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        input_bytes(&self.inputs) + self.parameters.iter().map(parameter_bytes).sum::<usize>()
    }
}

/// About how many bytes the inputs of a request take.
pub fn input_bytes(inputs: &[CheckedInput]) -> usize {
    inputs.iter().map(|input| input.data.len() + size_of_val(&input.shape[..]) + size_of::<CheckedInput>()).sum()
}

/// About how many bytes a parameter takes.
pub fn parameter_bytes((name, value): &(String, Parameter)) -> usize {
    let text = if let Parameter::String(text) = value { text.len() } else { 0 };
    size_of::<(String, Parameter)>() + name.len() + text
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A request with one FP32 input.
    pub fn checked(data: &'static [u8], shape: &[i64]) -> Checked {
        let inputs = [CheckedInput { index: 0, shape: shape.into(), data: data.into() }].into_iter().collect();
        let outputs = [0].into_iter().collect();
        let context = Some(Box::default());
        Checked { inputs, outputs, rows: 1, key: 0, terms: Default::default(), is_call: false, context }
    }

    fn with(change: impl FnOnce(&mut RequestContext)) -> Checked {
        let mut checked = checked(&[1, 2, 3, 4], &[1]);
        change(checked.context.as_mut().unwrap());
        checked
    }

    #[test]
    fn requests_that_differ_for_the_model_have_different_keys() {
        let parameter = |value| with(|context| context.parameters.push(("p".to_owned(), value)));
        let requests = [
            checked(&[1, 2, 3, 4], &[1]),
            checked(&[1, 2, 3, 5], &[1]),
            checked(&[1, 2, 3, 4], &[1, 1]),
            parameter(Parameter::Int64(1)),
            parameter(Parameter::Int64(2)),
            parameter(Parameter::Bool(true)),
            parameter(Parameter::String("1".to_owned())),
            with(|context| context.sequence.start = true),
            with(|context| context.sequence.correlation_id = CorrelationId::Number(1)),
        ];
        for (at, one) in requests.iter().enumerate() {
            for (other_at, other) in requests.iter().enumerate() {
                let same = at == other_at;
                assert_eq!(Key::new(7, 1, one) == Key::new(7, 1, other), same, "{at} {other_at}");
                assert_eq!(StoredRequest::new(1, one).is(1, other), same, "{at} {other_at}");
            }
            assert_ne!(Key::new(7, 1, one), Key::new(7, 2, one));
            assert!(!StoredRequest::new(1, one).is(2, one));
        }
    }

    #[test]
    fn bytes_that_move_from_one_input_to_the_next_change_the_key() {
        let two = |first: &'static [u8], second: &'static [u8]| {
            let mut made = checked(first, &[-1]);
            made.inputs.push(CheckedInput { index: 1, shape: [-1].into_iter().collect(), data: second.into() });
            made
        };
        assert_ne!(Key::new(7, 1, &two(&[1, 2], &[3])), Key::new(7, 1, &two(&[1], &[2, 3])));
    }
}
