//! What a request says of its sequence. Source: Triton's texts.

use std::sync::atomic::{AtomicU64, Ordering};

use alipes_protocol::{Code, CorrelationId, InferError, SequenceInfo, limits};
use alipes_spec::{ModelSpec, SequenceSpec};

/// Ids of sequences of one request: far from those that callers choose, and not zero where a model gets 32 bits of
/// them.
static NEXT_ID: AtomicU64 = AtomicU64::new(1 << 63 | 1);

/// Refuses an id that is too long to be kept, whatever the model.
pub fn check_id(sequence: &SequenceInfo) -> Result<(), InferError> {
    match &sequence.correlation_id {
        CorrelationId::Text(id) if id.len() > limits::SEQUENCE_ID_MAX_BYTES => Err(InferError::new(
            Code::Unsupported,
            format!("string correlation ID cannot be longer than {} characters", limits::SEQUENCE_ID_MAX_BYTES),
        )),
        _ => Ok(()),
    }
}

/// Checks what a request for a model of sequences says of its own, and returns whether that sequence is of it alone.
/// It is where the model takes requests in rounds: there a sequence is over with the answer, and a request without an
/// id begins one.
pub fn check_membership(
    model: &ModelSpec,
    spec: &SequenceSpec,
    rows: u32,
    sequence: &mut SequenceInfo,
) -> Result<bool, InferError> {
    if rows > 1 {
        return Err(InferError::invalid(format!(
            "inference request to model '{}' must specify batch-size 1 due to requirements of sequence batcher",
            model.name
        )));
    }
    if has_id(sequence) {
        return Ok(spec.iterative);
    }
    if !spec.iterative {
        return Err(InferError::invalid(format!(
            "inference request to model '{}' must specify a non-zero or non-empty correlation ID",
            model.name
        )));
    }
    sequence.start = true;
    sequence.correlation_id = CorrelationId::Number(NEXT_ID.fetch_add(1, Ordering::Relaxed));
    Ok(true)
}

/// Whether a request belongs to a sequence that others may belong to.
pub fn has_id(sequence: &SequenceInfo) -> bool {
    match &sequence.correlation_id {
        CorrelationId::Number(id) => *id != 0,
        CorrelationId::Text(id) => !id.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_may_have_as_many_bytes_as_the_limit_says() {
        let of =
            |len: usize| SequenceInfo { correlation_id: CorrelationId::Text("x".repeat(len)), ..Default::default() };
        assert!(check_id(&of(limits::SEQUENCE_ID_MAX_BYTES)).is_ok());
        let error = check_id(&of(limits::SEQUENCE_ID_MAX_BYTES + 1)).unwrap_err();
        assert_eq!(error.code, Code::Unsupported);
        assert_eq!(error.message, "string correlation ID cannot be longer than 128 characters");
    }
}
