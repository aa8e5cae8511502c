//! One inference call, independent of the wire it came over.

use std::sync::Arc;

use compact_str::CompactString;
use smallvec::SmallVec;

use crate::Tensor;
use crate::trace::Trace;

/// A value of a request or response parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    /// A truth value.
    Bool(bool),
    /// A signed integer.
    Int64(i64),
    /// A floating-point number.
    Double(f64),
    /// A text.
    String(String),
}

/// The id that ties the requests of a sequence together; `sequence_id` on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CorrelationId {
    /// A number; zero means "no sequence".
    Number(u64),
    /// A text of at most 128 characters.
    Text(String),
}

impl Default for CorrelationId {
    fn default() -> Self {
        CorrelationId::Number(0)
    }
}

/// What a request says about the sequence it belongs to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SequenceInfo {
    /// Which sequence.
    pub correlation_id: CorrelationId,
    /// This request opens the sequence.
    pub start: bool,
    /// This request closes the sequence.
    pub end: bool,
}

/// An output that the caller asked for, and the form it should come in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestedOutput {
    /// Name of the output.
    pub name: CompactString,
    /// Binary tensor extension instead of JSON; `None` where the request did not say (HTTP only).
    pub binary: Option<bool>,
    /// Return the top-k classes instead of the tensor; 0 asks for the tensor itself.
    pub classification: u32,
    /// The tensor goes into a region of the caller, and the answer only describes it.
    pub in_region: bool,
}

/// One inference call as a codec understood it, not yet checked against a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InferRequest {
    /// The caller's id; empty where none was given.
    pub id: CompactString,
    /// Inputs in the caller's order.
    pub inputs: Vec<Tensor>,
    /// Outputs asked for; empty asks for all of them.
    pub outputs: Vec<RequestedOutput>,
    /// Parameters that are the model's business, in the caller's order.
    pub parameters: Vec<(String, Parameter)>,
    /// Sequence membership; the default is "none".
    pub sequence: SequenceInfo,
    /// 1 is highest; 0 means the model's default level.
    pub priority: u64,
    /// Longest wait in the queue in microseconds; 0 means none was given.
    pub timeout_us: u64,
    /// On a stream: tell the end of the responses even where it carries no response.
    pub empty_final_response: bool,
    /// Answer outputs in binary unless they say otherwise (HTTP's `binary_data_output`).
    pub binary_by_default: bool,
    /// The body was the only input's bytes: its name, shape and datatype come from the model
    /// (`Inference-Header-Content-Length: 0`, or an empty body). `inputs` then holds one nameless UINT8 tensor.
    pub raw: bool,
    /// It came to the model's endpoint: its only input is a body, of which no declaration says anything
    /// ([`crate::call`]).
    pub call: bool,
    /// The request's record, for the few requests that are traced.
    pub trace: Option<Arc<Trace>>,
    /// It is part of a request that was admitted: a server that stops still takes it.
    pub admitted: bool,
    /// The request goes into the payload log, with these headers.
    pub logged: Option<Arc<[(String, String)]>>,
}

/// The first name that was there before.
pub fn first_repeated<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut names: SmallVec<[(&str, usize); 8]> = names.zip(0..).collect();
    // Sorted, because a hostile request has thousands of names and comparing each with each would take long.
    names.sort_unstable();
    let repeated = names.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1]);
    repeated.min_by_key(|(_, place)| *place).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_that_comes_again_is_found() {
        let of = |names: &str| first_repeated(names.split(' ').collect::<Vec<_>>().into_iter()).map(str::to_owned);
        assert_eq!(of("a b b a"), Some("b".to_owned()));
        assert_eq!(of("a b a b"), Some("a".to_owned()));
        assert_eq!(of("c b a b a b c"), Some("b".to_owned()));
        assert_eq!((of("a b c"), of("a")), (None, None));
    }
}
