//! Parameters: those of a request, of an input and of an output.

use std::borrow::Cow;

use super::DecodeContext;
use super::error::{Within, check_entries};
use super::value::{Value, lossy};
use crate::{CorrelationId, InferError, InferRequest, Parameter, RegionSlice};

/// Keys that begin so belong to the protocol.
const RESERVED_PREFIX: &[u8] = b"triton_";

/// Reads the parameters of a request into `request`. A key that is given twice counts once, with its first value.
///
/// # Errors
///
/// No object; a known key with a value of another type, a reserved key, a value of a type that models do not take.
pub(super) fn read_request(
    parameters: Value<'_>,
    context: DecodeContext<'_>,
    request: &mut InferRequest,
) -> Result<(), InferError> {
    context.reserve_text(parameters.len())?;
    let members = parameters.members().within("failed to get request params.")?;
    let mut seen = std::collections::HashSet::new();
    for (key, value) in members {
        if seen.insert(key.clone()) {
            check_entries(seen.len() - 1, "parameters")?;
            read_one(key, value, request)?;
        }
    }
    Ok(())
}

fn read_one(key: Cow<'_, [u8]>, value: Value<'_>, request: &mut InferRequest) -> Result<(), InferError> {
    match &*key {
        b"sequence_id" => {
            request.sequence.correlation_id = correlation_id(value).within("Unable to parse 'sequence_id'")?;
        }
        b"sequence_start" => request.sequence.start = value.as_bool().within("Unable to parse 'sequence_start'")?,
        b"sequence_end" => request.sequence.end = value.as_bool().within("Unable to parse 'sequence_end'")?,
        b"priority" => request.priority = value.as_u64().within("Unable to parse 'priority'")?,
        b"timeout" => request.timeout_us = value.as_u64().within("Unable to parse 'timeout'")?,
        b"binary_data_output" => {
            request.binary_by_default = value.as_bool().within("Unable to parse 'binary_data_output'")?;
        }
        _ if key.starts_with(RESERVED_PREFIX) => return Err(reserved()),
        _ => {
            let key = lossy(key.into_owned());
            let value = model_value(&key, value)?;
            request.parameters.push((key, value));
        }
    }
    Ok(())
}

fn correlation_id(value: Value<'_>) -> Result<CorrelationId, InferError> {
    match value.as_u64() {
        Ok(id) => Ok(CorrelationId::Number(id)),
        Err(_) => Ok(CorrelationId::Text(value.as_text()?.into_owned())),
    }
}

/// A parameter that is the model's business.
///
/// # Errors
///
/// A value of a type that models do not take.
pub(super) fn model_value(key: &str, value: Value<'_>) -> Result<Parameter, InferError> {
    if let Ok(text) = value.as_text() {
        return Ok(Parameter::String(text.into_owned()));
    }
    let number = || value.as_i64().map(Parameter::Int64).or_else(|_| value.as_f64().map(Parameter::Double));
    value.as_bool().map(Parameter::Bool).or_else(|_| number()).map_err(|_| {
        InferError::invalid(format!(
            "parameter '{key}' has invalid type. It should be either 'int', 'bool', or 'string'."
        ))
    })
}

fn reserved() -> InferError {
    InferError::invalid(
        "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
    )
}

/// What the parameters of an input say about where its data is; anything else in them is ignored.
#[derive(Clone, Copy, Debug)]
pub(super) struct InputParameters<'a> {
    /// Bytes of the binary tail.
    pub binary_data_size: Option<Value<'a>>,
    /// Name of a shared-memory region.
    pub region: Option<Value<'a>>,
    offset: Option<Value<'a>>,
    byte_size: Option<Value<'a>>,
}

impl<'a> InputParameters<'a> {
    pub(super) fn of(parameters: Option<Value<'a>>) -> InputParameters<'a> {
        let names = ["binary_data_size", "shared_memory_region", "shared_memory_offset", "shared_memory_byte_size"];
        let [binary_data_size, region, offset, byte_size] = parameters.map_or([None; 4], |value| value.pick(names));
        InputParameters { binary_data_size, region, offset, byte_size }
    }

    /// The part of a shared-memory region in which the tensor lies, where it does.
    ///
    /// # Errors
    ///
    /// Values of another type.
    pub(super) fn slice(self, context: DecodeContext<'_>) -> Result<Option<RegionSlice<'a>>, InferError> {
        let region =
            self.region.map(|name| context.text(name)).transpose().within("Unable to parse 'shared_memory_region'")?;
        let number = |value: Option<Value<'_>>| value.map_or(Ok(0), Value::as_u64);
        let offset = number(self.offset).within("Unable to parse 'shared_memory_offset'")?;
        let byte_size = number(self.byte_size).within("Unable to parse 'shared_memory_byte_size'")?;
        Ok(region.map(|name| RegionSlice { name, offset, byte_size }))
    }
}

/// What the parameters of an output ask for; anything else in them is ignored.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutputParameters<'a> {
    classification: Option<Value<'a>>,
    binary_data: Option<Value<'a>>,
    place: InputParameters<'a>,
}

impl<'a> OutputParameters<'a> {
    pub(super) fn of(parameters: Option<Value<'a>>) -> OutputParameters<'a> {
        let [classification, binary_data] =
            parameters.map_or([None; 2], |value| value.pick(["classification", "binary_data"]));
        OutputParameters { classification, binary_data, place: InputParameters::of(parameters) }
    }

    /// # Errors
    ///
    /// A region together with what cannot be written there.
    pub(super) fn check_exclusions(self) -> Result<(), InferError> {
        if self.place.region.is_none() {
            return Ok(());
        }
        if self.classification.is_some() {
            return Err(both_with_region("classification"));
        }
        match self.binary_data.map(Value::as_bool).transpose().within("Unable to set 'binary_data'")? {
            Some(true) => Err(both_with_region("binary_data")),
            _ => Ok(()),
        }
    }

    /// How many classes are asked for; 0 where none are.
    ///
    /// # Errors
    ///
    /// A value of another type.
    pub(super) fn classes(self) -> Result<u32, InferError> {
        let classes = self.classification.map_or(Ok(0), Value::as_u64).within("Unable to set 'classification'")?;
        // A larger count asks for every class, as does the largest that the field holds.
        Ok(u32::try_from(classes).unwrap_or(u32::MAX))
    }

    /// Where in shared memory the output goes; see [`InputParameters::slice`].
    pub(super) fn slice(self, context: DecodeContext<'_>) -> Result<Option<RegionSlice<'a>>, InferError> {
        self.place.slice(context)
    }

    /// Whether binary form is requested, where the parameter is present.
    ///
    /// # Errors
    ///
    /// A value of another type.
    pub(super) fn binary(self) -> Result<Option<bool>, InferError> {
        self.binary_data.map(Value::as_bool).transpose().within("Unable to parse 'binary_data'")
    }
}

fn both_with_region(other: &str) -> InferError {
    InferError::invalid(format!("Output can't set both 'shared_memory_region' and '{other}'"))
}
