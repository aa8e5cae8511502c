//! From tensors to a request for a step, and from its response to tensors.

use alipes_protocol::{CorrelationId, Datatype, InferError, InferRequest, Parameter, SequenceInfo, Shape, Tensor};
use alipes_request::check::{RequestContext, Terms};
use alipes_request::responder::Reply;
use alipes_runtime::model::ModelVersion;
use bytes::Bytes;

use super::Step;

/// A tensor of an ensemble. Its bytes are those that the caller sent or a step gave: nothing is copied.
#[derive(Clone, Debug)]
pub struct Value {
    /// Element type.
    pub datatype: Datatype,
    /// Sizes, as they left the request or the step.
    pub shape: Shape,
    /// Row-major bytes.
    pub data: Bytes,
    /// Rows, where the batch dimension leads the shape.
    pub rows: Option<u32>,
    /// Which sequence the step that gave it says it belongs to; none of an input.
    pub sequence: Option<SequenceInfo>,
}

impl Value {
    /// The shape for someone who declares these sizes, with or without a batch dimension in front.
    ///
    /// Models that batch and models that do not may stand in one ensemble: a batch of one row gains or loses its batch
    /// dimension where that makes it fit. Source: Triton's ensemble scheduler.
    pub fn shape_for(&self, declared: &[i64], batches: bool) -> Shape {
        if batches == self.rows.is_some() {
            return self.shape.clone();
        }
        let fits = declared.len() == self.shape.len()
            && declared.iter().zip(&self.shape).all(|(&size, &actual)| size < 0 || actual < 0 || size == actual);
        match (batches, fits) {
            (true, true) => [1].into_iter().chain(self.shape.iter().copied()).collect(),
            (false, false) if self.rows == Some(1) => self.shape[1..].into(),
            _ => self.shape.clone(),
        }
    }
}

/// A request for a step, and what its response is read with.
pub struct Prepared {
    /// The request.
    pub request: InferRequest,
    /// Rows of the request, where the model batches.
    pub rows: Option<u32>,
    /// The sequence that the request belongs to.
    pub sequence: SequenceInfo,
}

/// The request for a step. All that the caller said of his request is said of this one too, and where the steps before
/// it say which sequence their responses belong to, that counts.
pub fn prepare(
    step: &Step,
    member: &ModelVersion,
    terms: &Terms,
    caller: &RequestContext,
    values: Vec<Option<Value>>,
) -> Prepared {
    let batches = member.spec.max_batch_size > 0;
    let sequence_of = |value: &Option<Value>| value.as_ref().and_then(|value| value.sequence.clone());
    let sequence = values.iter().find_map(sequence_of).unwrap_or_else(|| caller.sequence.clone());
    let tensor = |(name, value): (&compact_str::CompactString, Option<Value>)| {
        let value = value?;
        let port = member.spec.inputs.iter().find(|port| port.name == name.as_str());
        let shape = port.map_or_else(|| value.shape.clone(), |port| value.shape_for(&port.dims, batches));
        Some(Tensor { name: name.clone(), datatype: value.datatype, shape, data: value.data })
    };
    let inputs: Vec<Tensor> = step.inputs.iter().zip(values).filter_map(tensor).collect();
    let rows = inputs.first().filter(|_| batches).and_then(|input| input.shape.first());
    Prepared {
        rows: rows.map(|&rows| u32::try_from(rows).unwrap_or(0)),
        request: InferRequest {
            id: terms.id.clone(),
            inputs,
            outputs: step.requested.clone(),
            parameters: caller.parameters.clone(),
            sequence: sequence.clone(),
            priority: terms.priority,
            timeout_us: terms.timeout_us,
            ..Default::default()
        },
        sequence,
    }
}

/// The tensors of a step's response, in the step's order; none for what it left out.
///
/// # Errors
///
/// The response says in a wrong way which sequence it belongs to.
pub fn values(
    step: &Step,
    reply: Reply,
    rows: Option<u32>,
    sequence: &SequenceInfo,
) -> Result<Vec<Option<Value>>, InferError> {
    let sequence = sequence_of(&reply.parameters, sequence)?;
    let mut outputs = reply.outputs;
    let value = |name: &compact_str::CompactString| {
        let place = outputs.iter().position(|output| output.name == *name)?;
        let Tensor { datatype, shape, data, .. } = outputs.swap_remove(place);
        Some(Value { datatype, shape, data, rows, sequence: Some(sequence.clone()) })
    };
    Ok(step.outputs.iter().map(value).collect())
}

/// The sequence that a response belongs to: that of its request, unless its parameters say otherwise.
fn sequence_of(parameters: &[(String, Parameter)], request: &SequenceInfo) -> Result<SequenceInfo, InferError> {
    let mut sequence = SequenceInfo { correlation_id: request.correlation_id.clone(), start: false, end: false };
    let mut any = false;
    for (name, value) in parameters {
        match (name.as_str(), value) {
            ("sequence_id", Parameter::Int64(id)) => sequence.correlation_id = CorrelationId::Number(*id as u64),
            ("sequence_id", Parameter::String(id)) => sequence.correlation_id = CorrelationId::Text(id.clone()),
            ("sequence_start", Parameter::Bool(start)) => sequence.start = *start,
            ("sequence_end", Parameter::Bool(end)) => sequence.end = *end,
            ("sequence_id", _) => {
                return Err(InferError::invalid(
                    "expected parameter 'sequence_id' to be TRITONSERVER_PARAMETER_INT or TRITONSERVER_PARAMETER_STRING",
                ));
            }
            ("sequence_start" | "sequence_end", _) => {
                let text = format!("expect parameter '{name}' to be TRITONSERVER_PARAMETER_BOOL");
                return Err(InferError::invalid(text));
            }
            _ => continue,
        }
        any = true;
    }
    Ok(if any { sequence } else { request.clone() })
}

/// The parameters that a response of an ensemble carries. Source: recorded; Triton tells of every output of a step
/// which sequence it belongs to, even where there is none.
pub fn parameters(sequence: Option<SequenceInfo>) -> Vec<(String, Parameter)> {
    let Some(SequenceInfo { correlation_id, start, end }) = sequence else { return Vec::new() };
    let id = match correlation_id {
        CorrelationId::Number(id) => Parameter::Int64(id as i64),
        CorrelationId::Text(id) => Parameter::String(id),
    };
    let named = |name: &str, value| (name.to_owned(), value);
    vec![
        named("sequence_id", id),
        named("sequence_start", Parameter::Bool(start)),
        named("sequence_end", Parameter::Bool(end)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(shape: &[i64], rows: Option<u32>) -> Value {
        Value { datatype: Datatype::Fp32, shape: shape.into(), data: Bytes::new(), rows, sequence: None }
    }

    #[test]
    fn one_row_gains_or_loses_its_batch_dimension_where_that_makes_it_fit() {
        assert_eq!(value(&[2], None).shape_for(&[2], true)[..], [1, 2]);
        assert_eq!(value(&[1, 2], Some(1)).shape_for(&[2], false)[..], [2]);
    }

    #[test]
    fn a_batch_passes_as_one_tensor_and_back_where_the_shapes_say_so() {
        assert_eq!(value(&[3, 2], Some(3)).shape_for(&[-1, 2], false)[..], [3, 2]);
        assert_eq!(value(&[3, 2], None).shape_for(&[2], true)[..], [3, 2]);
        assert_eq!(value(&[3, 2], Some(3)).shape_for(&[2], false)[..], [3, 2]);
        assert_eq!(value(&[3, 2], Some(3)).shape_for(&[5], true)[..], [3, 2]);
    }

    #[test]
    fn a_response_may_say_which_sequence_it_belongs_to() {
        let request = SequenceInfo { correlation_id: CorrelationId::Number(7), start: true, end: false };
        let read = |parameters: &[(&str, Parameter)]| {
            let owned: Vec<_> = parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            sequence_of(&owned, &request)
        };
        assert_eq!(read(&[("other", Parameter::Bool(true))]), Ok(request.clone()));
        let ended = SequenceInfo { correlation_id: CorrelationId::Number(7), start: false, end: true };
        assert_eq!(read(&[("sequence_end", Parameter::Bool(true))]), Ok(ended));
        let moved = read(&[("sequence_id", Parameter::Int64(9))]).unwrap();
        assert_eq!((moved.correlation_id, moved.start), (CorrelationId::Number(9), false));
        assert!(read(&[("sequence_start", Parameter::Int64(1))]).unwrap_err().message.ends_with("PARAMETER_BOOL"));
    }
}
