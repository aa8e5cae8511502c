//! What stands in the frames between the server and its workers: tensors, and parameters as JSON.

use std::collections::BTreeMap;

use alipes_link::{Output, OutputData, Placed};
use alipes_protocol::Parameter;
use bytes::Bytes;
use serde::{Serialize, Serializer};

/// Why a message cannot be from a sound worker.
pub type Violation = String;

/// The bytes of a worker's tensor, which may lie in what it was given with its request.
pub fn bytes(tensor: &Output, placed: Option<&Placed>) -> Result<Bytes, Violation> {
    match (&tensor.data, placed) {
        (OutputData::Bytes(data), _) => Ok(data.clone()),
        (OutputData::Input { .. }, Some(placed)) => tensor.resolve(placed).map_err(|violation| violation.text),
        (OutputData::Input { .. }, None) => Err("a tensor lies in the memory of a request that is over".into()),
    }
}

/// The request's parameters as a model reads them: the text of a JSON object.
pub fn parameters_json(parameters: &[(String, Parameter)]) -> String {
    if parameters.is_empty() {
        return String::new();
    }
    // Sorted, and of several with one name the last.
    let object: BTreeMap<&str, Value<'_>> =
        parameters.iter().map(|(name, parameter)| (name.as_str(), Value(parameter))).collect();
    // Neither keys nor values can fail to be written.
    serde_json::to_string(&object).unwrap_or_default()
}

/// A parameter as JSON; a number that JSON lacks becomes null.
struct Value<'a>(&'a Parameter);

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Parameter::Bool(value) => serializer.serialize_bool(*value),
            Parameter::Int64(value) => serializer.serialize_i64(*value),
            Parameter::Double(value) => serializer.serialize_f64(*value),
            Parameter::String(value) => serializer.serialize_str(value),
        }
    }
}
