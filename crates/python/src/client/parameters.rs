//! Parameters of requests: those of the protocol, and the model's own.

use alipes_protocol::Parameter;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};

use super::errors::wrong;

/// Parameters in the order in which they are sent.
pub type Parameters = Vec<(String, Parameter)>;

/// The options of a request besides its tensors.
pub struct RequestOptions<'a, 'py> {
    pub sequence_id: Option<&'a Bound<'py, PyAny>>,
    pub sequence_start: bool,
    pub sequence_end: bool,
    pub parameters: Option<&'a Bound<'py, PyDict>>,
    pub timeout_us: u64,
    pub priority: u64,
}

impl RequestOptions<'_, '_> {
    /// All of it as parameters of the message.
    pub fn parameters(&self) -> PyResult<Parameters> {
        let mut all = Parameters::new();
        if let Some(id) = self.sequence_id.map(sequence_id).transpose()?.flatten() {
            all.push(("sequence_id".to_owned(), id));
            all.push(("sequence_start".to_owned(), Parameter::Bool(self.sequence_start)));
            all.push(("sequence_end".to_owned(), Parameter::Bool(self.sequence_end)));
        }
        if self.priority != 0 {
            all.push(("priority".to_owned(), integer("priority", self.priority)?));
        }
        if self.timeout_us != 0 {
            all.push(("timeout".to_owned(), integer("timeout_us", self.timeout_us)?));
        }
        for (key, value) in self.parameters.into_iter().flatten() {
            all.push((key.extract::<String>()?, parameter(&key, &value)?));
        }
        Ok(all)
    }
}

/// Parameters that Python has put together already.
pub fn read(dict: &Bound<'_, PyDict>) -> PyResult<Parameters> {
    let mut all = Parameters::with_capacity(dict.len());
    for (key, value) in dict {
        let name: String = key.extract()?;
        let value = if name == "sequence_id" { sequence_id(&value)? } else { Some(parameter(&key, &value)?) };
        all.extend(value.map(|value| (name, value)));
    }
    Ok(all)
}

/// A sequence's id; zero and the empty text are none.
fn sequence_id(id: &Bound<'_, PyAny>) -> PyResult<Option<Parameter>> {
    if let Ok(text) = id.cast::<PyString>() {
        let text = text.to_str()?;
        return Ok((!text.is_empty()).then(|| Parameter::String(text.to_owned())));
    }
    let number: u64 = id.extract().map_err(|_| {
        wrong(format!(
            "the sequence id {id} cannot be sent: expected a text or a whole number of 64 bits, not negative"
        ))
    })?;
    // The message's field is signed and the id is not: the bits are kept, and the server reads them so.
    Ok((number != 0).then_some(Parameter::Int64(number as i64)))
}

fn integer(name: &str, value: u64) -> PyResult<Parameter> {
    let value = i64::try_from(value).map_err(|_| wrong(format!("{name}={value} does not fit 63 bits")))?;
    Ok(Parameter::Int64(value))
}

/// A parameter's value.
pub fn parameter(key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<Parameter> {
    if let Ok(value) = value.cast::<PyBool>() {
        Ok(Parameter::Bool(value.is_true()))
    } else if value.is_instance_of::<PyInt>() {
        let number = value.extract().map_err(|_| wrong(format!("the parameter {key}={value} does not fit 64 bits")))?;
        Ok(Parameter::Int64(number))
    } else if let Ok(value) = value.cast::<PyFloat>() {
        Ok(Parameter::Double(value.value()))
    } else if let Ok(value) = value.cast::<PyString>() {
        Ok(Parameter::String(value.to_str()?.to_owned()))
    } else {
        let class = value.get_type();
        Err(wrong(format!("the parameter {key} is a {}: expected bool, int, float or str", class.name()?)))
    }
}
