//! Parameters of requests and responses: dictionaries in Python, JSON text where they are read.

use alipes_protocol::Parameter;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};

use super::errors::{class_text, refused};

/// The parameters that a model attaches to a request, in its order.
pub fn of_request(argument: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<(String, Parameter)>> {
    from_python(
        argument,
        |_| true,
        |name, class| {
            format!("Unsupported value type on parameters: '{name}' is {class}, expected bool, int, float or str.")
        },
    )
}

/// The parameters that a model attaches to a response, in its order: no numbers with a fraction, as in Triton.
pub fn of_response(argument: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<(String, Parameter)>> {
    from_python(
        argument,
        |value| !matches!(value, Parameter::Double(_)),
        |_, class| format!("Expect parameters values to have type bool/int/str, found type {class}"),
    )
}

/// `accepts` says whether a value is of a type that may stand there, `wrong` what is wrong with another one, by its
/// name and class.
fn from_python(
    argument: Option<&Bound<'_, PyAny>>,
    accepts: impl Fn(&Parameter) -> bool,
    wrong: impl Fn(&str, &str) -> String,
) -> PyResult<Vec<(String, Parameter)>> {
    let Some(argument) = argument else { return Ok(Vec::new()) };
    let dict = argument.cast::<PyDict>().map_err(|_| refused(format!("Expect dict, got {}", class_text(argument))))?;
    dict.iter().map(|(key, value)| pair(&key, &value, &accepts, &wrong)).collect()
}

fn pair(
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    accepts: &impl Fn(&Parameter) -> bool,
    wrong: &impl Fn(&str, &str) -> String,
) -> PyResult<(String, Parameter)> {
    let name = key
        .cast::<PyString>()
        .map_err(|_| refused(format!("Expect parameters keys to have type str, found type {}", class_text(key))))?;
    let name = name.to_str()?.to_owned();
    let value = parameter(value)?.filter(accepts).ok_or_else(|| refused(wrong(&name, &class_text(value))))?;
    Ok((name, value))
}

fn parameter(value: &Bound<'_, PyAny>) -> PyResult<Option<Parameter>> {
    Ok(Some(if let Ok(value) = value.cast::<PyBool>() {
        Parameter::Bool(value.is_true())
    } else if let Ok(value) = value.cast::<PyInt>() {
        match value.extract() {
            Ok(number) => Parameter::Int64(number),
            Err(_) => return Err(refused(format!("The parameter {value} does not fit a signed integer of 64 bits."))),
        }
    } else if let Ok(value) = value.cast::<PyFloat>() {
        Parameter::Double(value.value())
    } else if let Ok(value) = value.cast::<PyString>() {
        Parameter::String(value.to_str()?.to_owned())
    } else {
        return Ok(None);
    }))
}

/// Parameters as the text of a JSON object.
pub fn to_json(parameters: &[(String, Parameter)]) -> String {
    let members = parameters.iter().map(|(name, value)| (name.clone(), json(value)));
    serde_json::Value::Object(members.collect()).to_string()
}

/// One parameter as JSON; a number that JSON lacks becomes null.
pub fn json(value: &Parameter) -> serde_json::Value {
    match value {
        Parameter::Bool(value) => (*value).into(),
        Parameter::Int64(value) => (*value).into(),
        Parameter::Double(value) => (*value).into(),
        Parameter::String(value) => value.as_str().into(),
    }
}

/// Parameters out of the text of a JSON object; what is no parameter is left out.
pub fn from_json(text: &str) -> Vec<(String, Parameter)> {
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).unwrap_or_default();
    let parameters = object.into_iter().filter_map(|(name, value)| {
        let value = match value {
            serde_json::Value::Bool(value) => Parameter::Bool(value),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(number) => Parameter::Int64(number),
                None => Parameter::Double(number.as_f64()?),
            },
            serde_json::Value::String(text) => Parameter::String(text),
            _ => return None,
        };
        Some((name, value))
    });
    parameters.collect()
}
