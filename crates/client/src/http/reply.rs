//! An inference response over HTTP: a JSON object, then the outputs' bytes.

use alipes_protocol::codec::proto::{Reply, check_output, is_elsewhere};
use alipes_protocol::{Datatype, Parameter, Shape, Tensor};
use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::values;
use crate::error::ClientError;

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    model_name: String,
    #[serde(default)]
    model_version: Value,
    #[serde(default, deserialize_with = "or_default")]
    id: String,
    #[serde(default, deserialize_with = "or_default")]
    parameters: Map<String, Value>,
    outputs: Vec<Output>,
}

#[derive(Deserialize)]
struct Output {
    name: String,
    datatype: String,
    shape: Vec<i64>,
    #[serde(default, deserialize_with = "or_default")]
    parameters: Map<String, Value>,
    data: Option<Value>,
}

/// Reads a body whose first `json_length` bytes are JSON, or all of it.
///
/// # Errors
/// What is no such body, or holds outputs that contradict themselves.
pub fn decode(mut body: Bytes, json_length: Option<usize>) -> Result<Reply, ClientError> {
    let length = json_length.unwrap_or(body.len());
    if length > body.len() {
        return Err(unreadable("the answer ends within its JSON"));
    }
    let json = body.split_to(length);
    let document: Document = serde_json::from_slice(&json).map_err(|error| unreadable(error.to_string()))?;
    let mut reply = Reply {
        model_name: document.model_name,
        model_version: document.model_version.as_str().map_or_else(String::new, str::to_owned),
        id: document.id,
        parameters: parameters(document.parameters),
        ..Reply::default()
    };
    for output in document.outputs {
        let tensor = tensor(output, &mut body)?;
        if is_elsewhere(&tensor.shape, &tensor.data) {
            reply.elsewhere.push(reply.outputs.len());
        } else {
            let (datatype, bytes) = (tensor.datatype, tensor.data.len());
            check_output(&tensor.name, datatype, &tensor.shape, bytes)
                .map_err(|error| ClientError::broken(error.message))?;
        }
        reply.outputs.push(tensor);
    }
    Ok(reply)
}

/// A member that may be null, as servers in Python send what they do not have.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(member: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(member)?.unwrap_or_default())
}

/// An output. One with neither bytes nor values lies in shared memory.
fn tensor(output: Output, rest: &mut Bytes) -> Result<Tensor, ClientError> {
    let Output { name, datatype, shape, parameters, data: values } = output;
    let known = Datatype::from_name(&datatype);
    let datatype = known.ok_or_else(|| unreadable(format!("output '{name}' has the unknown datatype '{datatype}'")))?;
    let data = match (parameters.get("binary_data_size"), values) {
        (Some(size), _) => {
            let size = size.as_u64().and_then(|size| usize::try_from(size).ok()).filter(|size| *size <= rest.len());
            rest.split_to(size.ok_or_else(|| unreadable(format!("the answer ends within output '{name}'")))?)
        }
        (None, Some(values)) => values::bytes(&values, datatype)
            .ok_or_else(|| unreadable(format!("output '{name}' has values that are no {datatype}")))?,
        (None, None) => Bytes::new(),
    };
    Ok(Tensor { name: name.into(), datatype, shape: Shape::from_vec(shape), data })
}

fn parameters(object: Map<String, Value>) -> Vec<(String, Parameter)> {
    let known = object.into_iter().filter_map(|(key, value)| {
        let value = match value {
            Value::Bool(value) => Parameter::Bool(value),
            Value::Number(number) => match number.as_i64() {
                Some(number) => Parameter::Int64(number),
                None => Parameter::Double(number.as_f64()?),
            },
            Value::String(value) => Parameter::String(value),
            _ => return None,
        };
        Some((key, value))
    });
    known.collect()
}

fn unreadable(what: impl std::fmt::Display) -> ClientError {
    ClientError::broken(format!("the server's response cannot be read: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode_parts(json: &str, data: &[u8]) -> Result<Reply, ClientError> {
        decode([json.as_bytes(), data].concat().into(), Some(json.len()))
    }

    #[test]
    fn binary_outputs_are_slices_and_values_become_bytes() {
        let json = r#"{"model_name":"m","model_version":"3","id":"7","parameters":{"p":1.5},"outputs":[
            {"name":"A","datatype":"UINT8","shape":[2],"parameters":{"binary_data_size":2}},
            {"name":"B","datatype":"INT32","shape":[1,2],"data":[[1,-2]]},
            {"name":"C","datatype":"UINT8","shape":[1],"parameters":{"binary_data_size":1}},
            {"name":"D","datatype":"FP32","shape":[9]}]}"#;
        let reply = decode_parts(json, &[1, 2, 3]).unwrap();
        assert_eq!((reply.model_version.as_str(), reply.id.as_str()), ("3", "7"));
        assert_eq!(reply.parameters, [("p".to_owned(), Parameter::Double(1.5))]);
        let data: Vec<&[u8]> = reply.outputs.iter().map(|output| output.data.as_ref()).collect();
        assert_eq!(data, [&[1, 2][..], &[1, 0, 0, 0, 254, 255, 255, 255], &[3], &[]]);
        assert_eq!(reply.elsewhere, [3]);
    }

    #[test]
    fn what_is_null_is_left_out() {
        let json = r#"{"model_name":"m","model_version":null,"id":null,"parameters":null,"outputs":[
            {"name":"A","datatype":"UINT8","shape":[1],"parameters":null,"data":[7]}]}"#;
        let reply = decode_parts(json, &[]).unwrap();
        assert_eq!((reply.id.as_str(), reply.parameters.len(), &reply.outputs[0].data[..]), ("", 0, &[7][..]));
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let output = |text: &str| format!(r#"{{"outputs":[{{"name":"A","datatype":"UINT8","shape":[2]{text}}}]}}"#);
        for (text, why) in [
            (r#","parameters":{"binary_data_size":9}"#, "ends within output 'A'"),
            (r#","parameters":{"binary_data_size":1}"#, "which does not fit UINT8 of shape [2]"),
            (r#","data":["a","b"]"#, "values that are no UINT8"),
        ] {
            let error = decode_parts(&output(text), &[1, 2]).unwrap_err();
            assert!(error.message.contains(why), "{error}");
        }
        assert!(decode(Bytes::from_static(b"{}"), None).is_err());
        assert!(decode(Bytes::from_static(b"{}"), Some(3)).is_err());
    }
}
