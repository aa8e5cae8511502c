//! The parameters that place a tensor in a shared-memory region of the client.

use std::collections::BTreeMap;

use super::inference::{InferParameter, infer_parameter::ParameterChoice};
use crate::{InferError, RegionSlice};

/// The part of a region that a tensor's parameters name; `None` where they name none.
///
/// # Errors
/// A parameter of the wrong type, an offset or size without a region, a region without a size.
pub(super) fn slice_of<'a>(
    parameters: &'a BTreeMap<String, InferParameter>,
    tensor: &str,
) -> Result<Option<RegionSlice<'a>>, InferError> {
    if parameters.is_empty() {
        return Ok(None);
    }
    let name = match choice(parameters, "shared_memory_region") {
        None => None,
        Some(Some(ParameterChoice::StringParam(name))) => Some(name.as_str()),
        Some(_) => return Err(wrong_type("shared_memory_region", tensor, "string_param")),
    };
    let offset = number(parameters, "shared_memory_offset", tensor, name.is_some())?;
    let byte_size = number(parameters, "shared_memory_byte_size", tensor, name.is_some())?;
    match (name, byte_size) {
        (None, _) => Ok(None),
        (Some(_), None) => Err(InferError::invalid(format!(
            "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor '{tensor}'"
        ))),
        (Some(name), Some(byte_size)) => {
            Ok(Some(RegionSlice { name: name.into(), offset: offset.unwrap_or(0), byte_size }))
        }
    }
}

/// A parameter's value; the inner `None` is a parameter without one.
fn choice<'a>(parameters: &'a BTreeMap<String, InferParameter>, key: &str) -> Option<Option<&'a ParameterChoice>> {
    parameters.get(key).map(|parameter| parameter.parameter_choice.as_ref())
}

fn number(
    parameters: &BTreeMap<String, InferParameter>,
    key: &str,
    tensor: &str,
    has_region: bool,
) -> Result<Option<u64>, InferError> {
    match choice(parameters, key) {
        None => Ok(None),
        Some(_) if !has_region => Err(InferError::invalid(format!(
            "'{key}' can not be specified without 'shared_memory_region' parameter for tensor '{tensor}'"
        ))),
        // A negative number becomes one beyond any region and is refused as such; Triton does the same.
        Some(Some(ParameterChoice::Int64Param(value))) => Ok(Some(*value as u64)),
        Some(_) => Err(wrong_type(key, tensor, "int64_param")),
    }
}

fn wrong_type(key: &str, tensor: &str, expected: &str) -> InferError {
    InferError::invalid(format!("invalid value type for '{key}' parameter for tensor '{tensor}', expected {expected}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parameters: &[(&str, ParameterChoice)]) -> Result<Option<(String, u64, u64)>, String> {
        let parameters = parameters
            .iter()
            .map(|(key, choice)| (key.to_string(), InferParameter { parameter_choice: Some(choice.clone()) }))
            .collect();
        slice_of(&parameters, "X")
            .map(|slice| slice.map(|slice| (slice.name.into_owned(), slice.offset, slice.byte_size)))
            .map_err(|error| error.message)
    }

    fn name(name: &str) -> (&'static str, ParameterChoice) {
        ("shared_memory_region", ParameterChoice::StringParam(name.to_owned()))
    }

    fn size(size: i64) -> (&'static str, ParameterChoice) {
        ("shared_memory_byte_size", ParameterChoice::Int64Param(size))
    }

    #[test]
    fn a_region_needs_its_size() {
        assert_eq!(read(&[name("r"), size(16)]), Ok(Some(("r".to_owned(), 0, 16))));
        let text =
            "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor 'X'";
        assert_eq!(read(&[name("r")]), Err(text.to_owned()));
    }

    #[test]
    fn a_size_needs_its_region() {
        let text =
            "'shared_memory_byte_size' can not be specified without 'shared_memory_region' parameter for tensor 'X'";
        assert_eq!(read(&[size(16)]), Err(text.to_owned()));
    }

    #[test]
    fn other_types_are_refused() {
        let text = "invalid value type for 'shared_memory_offset' parameter for tensor 'X', expected int64_param.";
        let offset = ("shared_memory_offset", ParameterChoice::BoolParam(true));
        assert_eq!(read(&[name("r"), size(16), offset]), Err(text.to_owned()));
        let text = "invalid value type for 'shared_memory_region' parameter for tensor 'X', expected string_param.";
        assert_eq!(read(&[("shared_memory_region", ParameterChoice::Int64Param(1))]), Err(text.to_owned()));
    }

    #[test]
    fn other_parameters_name_no_region() {
        assert_eq!(read(&[("classification", ParameterChoice::Int64Param(2))]), Ok(None));
    }
}
