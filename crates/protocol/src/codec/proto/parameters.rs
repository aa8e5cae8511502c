//! Parameters of requests and outputs: those of the protocol, and those that are the model's business.

use std::collections::BTreeMap;

use super::inference::{InferParameter, infer_parameter::ParameterChoice};
use crate::{CorrelationId, InferError, InferRequest, Parameter};

/// Keys that begin so belong to the protocol.
const RESERVED_PREFIX: &str = "triton_";

/// The one reserved key that a request may carry.
const EMPTY_FINAL_RESPONSE: &str = "triton_enable_empty_final_response";

/// Reads the parameters of a request into `request`.
///
/// # Errors
/// A known key with a value of another type, a reserved key, a value of a type that models do not take.
pub(super) fn read_request(
    parameters: BTreeMap<String, InferParameter>,
    request: &mut InferRequest,
) -> Result<(), InferError> {
    for (key, InferParameter { parameter_choice: choice }) in parameters {
        match key.as_str() {
            "sequence_id" => request.sequence.correlation_id = correlation_id(choice)?,
            "sequence_start" => request.sequence.start = truth(&key, choice)?,
            "sequence_end" => request.sequence.end = truth(&key, choice)?,
            "priority" => request.priority = priority(choice)?,
            "timeout" => request.timeout_us = timeout(choice)?,
            EMPTY_FINAL_RESPONSE => request.empty_final_response = truth(&key, choice)?,
            _ if key.starts_with(RESERVED_PREFIX) => return Err(reserved()),
            _ => {
                let value = model_value(&key, choice)?;
                request.parameters.push((key, value));
            }
        }
    }
    Ok(())
}

/// How many classes an output's parameters ask for; 0 where they do not.
///
/// # Errors
/// A value that is no integer, or not positive. Triton's text says `>= 0` and refuses 0 all the same.
pub(super) fn classification(parameters: &BTreeMap<String, InferParameter>) -> Result<u32, InferError> {
    let Some(parameter) = parameters.get("classification") else { return Ok(0) };
    match parameter.parameter_choice {
        // A larger count asks for every class, as does the largest that the field holds.
        Some(ParameterChoice::Int64Param(count)) if count > 0 => Ok(u32::try_from(count).unwrap_or(u32::MAX)),
        Some(ParameterChoice::Int64Param(_)) => {
            Err(InferError::invalid("invalid value for 'classification' parameter, expected >= 0"))
        }
        _ => Err(InferError::invalid("invalid value type for 'classification' parameter, expected int64_param")),
    }
}

fn correlation_id(choice: Option<ParameterChoice>) -> Result<CorrelationId, InferError> {
    match choice {
        // The id is unsigned and the message's field is not: the bits are kept.
        Some(ParameterChoice::Int64Param(id)) => Ok(CorrelationId::Number(id as u64)),
        Some(ParameterChoice::StringParam(id)) => Ok(CorrelationId::Text(id)),
        _ => Err(wrong_type("sequence_id", "int64_param or string_param")),
    }
}

fn truth(key: &str, choice: Option<ParameterChoice>) -> Result<bool, InferError> {
    match choice {
        Some(ParameterChoice::BoolParam(value)) => Ok(value),
        _ => Err(wrong_type(key, "bool_param")),
    }
}

fn priority(choice: Option<ParameterChoice>) -> Result<u64, InferError> {
    match choice {
        Some(ParameterChoice::Uint64Param(level)) => Ok(level),
        Some(ParameterChoice::Int64Param(level)) => {
            u64::try_from(level).map_err(|_| InferError::invalid("invalid value for 'priority', expected value >= 0."))
        }
        _ => Err(wrong_type("priority", "int64_param or uint64_param")),
    }
}

fn timeout(choice: Option<ParameterChoice>) -> Result<u64, InferError> {
    match choice {
        // A negative timeout becomes a very long one, which no queue policy takes up; Triton does the same.
        Some(ParameterChoice::Int64Param(microseconds)) => Ok(microseconds as u64),
        _ => Err(wrong_type("timeout", "int64_param")),
    }
}

fn model_value(key: &str, choice: Option<ParameterChoice>) -> Result<Parameter, InferError> {
    match choice {
        Some(ParameterChoice::BoolParam(value)) => Ok(Parameter::Bool(value)),
        Some(ParameterChoice::Int64Param(value)) => Ok(Parameter::Int64(value)),
        Some(ParameterChoice::DoubleParam(value)) => Ok(Parameter::Double(value)),
        Some(ParameterChoice::StringParam(value)) => Ok(Parameter::String(value)),
        Some(ParameterChoice::Uint64Param(_)) | None => {
            Err(wrong_type(key, "int64_param, bool_param, or string_param"))
        }
    }
}

fn reserved() -> InferError {
    InferError::invalid(format!(
        "parameter keys starting with '{RESERVED_PREFIX}' are reserved for Triton usage. \
         Only the following keys starting with '{RESERVED_PREFIX}' are allowed: {EMPTY_FINAL_RESPONSE}"
    ))
}

fn wrong_type(key: &str, expected: &str) -> InferError {
    InferError::invalid(format!("invalid value type for '{key}' parameter, expected {expected}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: &str, choice: ParameterChoice) -> Result<InferRequest, String> {
        let parameters = BTreeMap::from([(key.to_owned(), InferParameter { parameter_choice: Some(choice) })]);
        let mut request = InferRequest::default();
        read_request(parameters, &mut request).map(|()| request).map_err(|error| error.message)
    }

    #[test]
    fn protocol_keys_leave_the_models_parameters_alone() {
        let request = read("timeout", ParameterChoice::Int64Param(5)).unwrap();
        assert_eq!((request.timeout_us, request.parameters.len()), (5, 0));
        let request = read("priority", ParameterChoice::Uint64Param(3)).unwrap();
        assert_eq!((request.priority, request.parameters.len()), (3, 0));
        let request = read(EMPTY_FINAL_RESPONSE, ParameterChoice::BoolParam(true)).unwrap();
        assert_eq!(request, InferRequest { empty_final_response: true, ..InferRequest::default() });
    }

    #[test]
    fn a_sequence_id_is_a_number_or_a_text() {
        let number = read("sequence_id", ParameterChoice::Int64Param(-1)).unwrap();
        assert_eq!(number.sequence.correlation_id, CorrelationId::Number(u64::MAX));
        let text = read("sequence_id", ParameterChoice::StringParam("abc".to_owned())).unwrap();
        assert_eq!(text.sequence.correlation_id, CorrelationId::Text("abc".to_owned()));
    }

    #[test]
    fn other_keys_reach_the_model() {
        let request = read("d", ParameterChoice::DoubleParam(1.5)).unwrap();
        assert_eq!(request.parameters, [("d".to_owned(), Parameter::Double(1.5))]);
    }

    #[test]
    fn wrong_types_are_named() {
        let text = "invalid value type for 'sequence_end' parameter, expected bool_param.";
        assert_eq!(read("sequence_end", ParameterChoice::Int64Param(1)), Err(text.to_owned()));
        let text = "invalid value type for 'priority' parameter, expected int64_param or uint64_param.";
        assert_eq!(read("priority", ParameterChoice::BoolParam(true)), Err(text.to_owned()));
    }
}
