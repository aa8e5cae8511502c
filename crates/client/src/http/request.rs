//! An inference request over HTTP: a JSON object, then the inputs' bytes.

use alipes_protocol::Parameter;
use alipes_protocol::codec::proto::{MessageInput, RequestMessage};
use bytes::Bytes;

use crate::message::{Outgoing, Verb};
use crate::sequence;

/// An inference as a request; `owned` gives the elements of an input that need not be copied.
pub fn infer(message: &RequestMessage<'_>, owned: impl Fn(usize) -> Option<Bytes>) -> Outgoing {
    let json = object(message);
    let json_length = json.len();
    let mut buffer = json.into_bytes();
    let mut pieces = Vec::new();
    for (index, data) in message.inputs.iter().map(|input| input.data.unwrap_or_default()).enumerate() {
        match owned(index).filter(|bytes| bytes.len() == data.len()) {
            None => buffer.extend_from_slice(data),
            Some(bytes) => {
                pieces.push(std::mem::take(&mut buffer).into());
                pieces.push(bytes);
            }
        }
    }
    if !buffer.is_empty() {
        pieces.push(buffer.into());
    }
    let path = path(message.model_name, message.model_version);
    Outgoing {
        path,
        verb: Verb::Post,
        json_length: Some(json_length),
        pieces,
        infer: true,
        sequence: sequence::of(message.parameters),
        headers: Vec::new(),
    }
}

fn path(model: &str, version: &str) -> String {
    let mut path = String::from("/v2/models/");
    sequence::escape(model, &mut path);
    if !version.is_empty() {
        path.push_str("/versions/");
        sequence::escape(version, &mut path);
    }
    path.push_str("/infer");
    path
}

fn object(message: &RequestMessage<'_>) -> String {
    let mut json = String::with_capacity(256);
    json.push('{');
    if !message.id.is_empty() {
        json.push_str("\"id\":");
        text(message.id, &mut json);
        json.push(',');
    }
    json.push_str("\"inputs\":[");
    list(message.inputs, &mut json, input);
    json.push(']');
    if !message.outputs.is_empty() {
        json.push_str(",\"outputs\":[");
        list(message.outputs, &mut json, |output, json| {
            json.push_str("{\"name\":");
            text(output.name, json);
            let elsewhere = output.parameters.iter().any(|(key, _)| key == "shared_memory_region");
            let binary = (!elsewhere).then_some(("binary_data", Parameter::Bool(true)));
            parameters(output.parameters, binary, json);
            json.push('}');
        });
        json.push(']');
    }
    let binary = message.outputs.is_empty().then_some(("binary_data_output", Parameter::Bool(true)));
    parameters(message.parameters, binary, &mut json);
    json.push('}');
    json
}

fn list<T>(items: &[T], json: &mut String, mut write: impl FnMut(&T, &mut String)) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            json.push(',');
        }
        write(item, json);
    }
}

fn input(input: &MessageInput<'_>, json: &mut String) {
    json.push_str("{\"name\":");
    text(input.name, json);
    json.push_str(",\"shape\":[");
    list(input.shape, json, |size, json| json.push_str(itoa::Buffer::new().format(*size)));
    json.push_str("],\"datatype\":");
    text(input.datatype, json);
    let size = input.data.map(|data| ("binary_data_size", Parameter::Int64(data.len() as i64)));
    parameters(input.parameters, size, json);
    json.push('}');
}

/// The member `parameters`, where there are any.
fn parameters(own: &[(String, Parameter)], further: Option<(&str, Parameter)>, json: &mut String) {
    let all = own.iter().map(|(key, value)| (key.as_str(), value));
    let all = all.chain(further.iter().map(|(key, value)| (*key, value)));
    for (index, (key, value)) in all.clone().enumerate() {
        json.push_str(if index == 0 { ",\"parameters\":{" } else { "," });
        text(key, json);
        json.push(':');
        match value {
            Parameter::Bool(value) => json.push_str(if *value { "true" } else { "false" }),
            // Sequence ids are unsigned, and carried with their bits; a number of JSON has no width.
            Parameter::Int64(value) if key == "sequence_id" => {
                json.push_str(itoa::Buffer::new().format(*value as u64));
            }
            Parameter::Int64(value) => json.push_str(itoa::Buffer::new().format(*value)),
            Parameter::Double(value) => json.push_str(&serde_json::Value::from(*value).to_string()),
            Parameter::String(value) => text(value, json),
        }
    }
    if all.count() > 0 {
        json.push('}');
    }
}

fn text(value: &str, json: &mut String) {
    json.push_str(&serde_json::Value::from(value).to_string());
}

#[cfg(test)]
mod tests {
    use alipes_protocol::codec::proto::MessageOutput;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_json_describes_the_request_and_the_bytes_follow() {
        let region = [("shared_memory_region".to_owned(), Parameter::String("r".to_owned()))];
        let options = [
            ("sequence_id".to_owned(), Parameter::Int64(-1)),
            ("rate".to_owned(), Parameter::Double(0.5)),
            ("word".to_owned(), Parameter::String("a\"b".to_owned())),
        ];
        let inputs = [
            MessageInput { name: "X", datatype: "UINT8", shape: &[1, 3], parameters: &[], data: Some(&[1, 2, 3]) },
            MessageInput { name: "R", datatype: "UINT8", shape: &[1], parameters: &region, data: None },
        ];
        let outputs = [MessageOutput { name: "Y", parameters: &[] }, MessageOutput { name: "Z", parameters: &region }];
        let message = RequestMessage {
            model_name: "a/b",
            model_version: "2",
            id: "7",
            parameters: &options,
            inputs: &inputs,
            outputs: &outputs,
        };
        let lent = Bytes::from_static(&[1, 2, 3]);
        let request = infer(&message, |index| (index == 0).then(|| lent.clone()));
        assert_eq!(request.path, "/v2/models/a%2Fb/versions/2/infer");
        let body = request.pieces.concat();
        let (json, data) = body.split_at(request.json_length.unwrap());
        assert_eq!(data, [1, 2, 3]);
        let read: Value = serde_json::from_slice(json).unwrap();
        let expected = json!({
            "id": "7",
            "inputs": [
                {"name": "X", "shape": [1, 3], "datatype": "UINT8", "parameters": {"binary_data_size": 3}},
                {"name": "R", "shape": [1], "datatype": "UINT8", "parameters": {"shared_memory_region": "r"}},
            ],
            "outputs": [
                {"name": "Y", "parameters": {"binary_data": true}},
                {"name": "Z", "parameters": {"shared_memory_region": "r"}},
            ],
            "parameters": {"sequence_id": u64::MAX, "rate": 0.5, "word": "a\"b"},
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn without_named_outputs_all_are_wanted_in_binary() {
        let request = infer(&RequestMessage { model_name: "m", ..Default::default() }, |_| None);
        let read: Value = serde_json::from_slice(&request.pieces.concat()).unwrap();
        assert_eq!(read, json!({"inputs": [], "parameters": {"binary_data_output": true}}));
    }
}
