//! Requests and responses as the payload log has them: the JSON of the V2 protocol.

use std::collections::BTreeSet;

use super::response::Encoder;
use crate::{Datatype, Parameter, Tensor};

/// What stands in the place of a value that is not logged.
pub const REDACTED: &str = "[redacted]";

/// The parts of a request or a response that are logged.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    /// The caller's id; empty where it gave none.
    pub id: &'a str,
    /// The model.
    pub model: &'a str,
    /// Its version.
    pub version: i64,
    /// `inputs` or `outputs`.
    pub side: &'static str,
    /// Parameters of the model's own.
    pub parameters: &'a [(String, Parameter)],
    /// The tensors.
    pub tensors: &'a [Tensor],
}

/// The document. A tensor that JSON cannot hold, and one that is redacted, is described without its data.
pub fn encode_payload(payload: Payload<'_>, redacted: &BTreeSet<String>) -> Vec<u8> {
    let mut encoder = Encoder::default();
    encoder.preamble(payload.id, payload.model, payload.version);
    encoder.parameters(&shown(payload.parameters, redacted));
    encoder.text(b",\"");
    encoder.text(payload.side.as_bytes());
    encoder.text(b"\":[");
    for (index, tensor) in payload.tensors.iter().enumerate() {
        encoder.separate(index);
        let is_text = !matches!(tensor.datatype, Datatype::Fp16 | Datatype::Bf16);
        encoder.logged(tensor, is_text && !redacted.contains(tensor.name.as_str()));
    }
    encoder.text(b"]}");
    encoder.head
}

fn shown(parameters: &[(String, Parameter)], redacted: &BTreeSet<String>) -> Vec<(String, Parameter)> {
    let value = |key: &String, value: &Parameter| {
        if redacted.contains(key) { Parameter::String(REDACTED.to_owned()) } else { value.clone() }
    };
    parameters.iter().map(|(key, one)| (key.clone(), value(key, one))).collect()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::{Value, json};

    use super::*;

    fn tensor(name: &str, datatype: Datatype, data: &'static [u8]) -> Tensor {
        Tensor { name: name.into(), datatype, shape: [2].into_iter().collect(), data: Bytes::from_static(data) }
    }

    fn document(payload: Payload<'_>, redacted: &[&str]) -> Value {
        let redacted = redacted.iter().map(|&name| name.to_owned()).collect();
        serde_json::from_slice(&encode_payload(payload, &redacted)).unwrap()
    }

    #[test]
    fn a_payload_is_a_document_of_the_protocol() {
        let parameters =
            [("key".to_owned(), Parameter::String("secret".into())), ("k".to_owned(), Parameter::Int64(1))];
        let tensors =
            [tensor("x", Datatype::Uint8, b"\x01\x02"), tensor("t", Datatype::Bytes, b"\x01\0\0\0a\x01\0\0\0\"")];
        let payload =
            Payload { id: "7", model: "m", version: 1, side: "inputs", parameters: &parameters, tensors: &tensors };
        let expected = json!({
            "id": "7", "model_name": "m", "model_version": "1",
            "parameters": {"key": "[redacted]", "k": 1},
            "inputs": [
                {"name": "x", "datatype": "UINT8", "shape": [2], "data": [1, 2]},
                {"name": "t", "datatype": "BYTES", "shape": [2], "data": ["a", "\""]},
            ],
        });
        assert_eq!(document(payload, &["key"]), expected);
    }

    #[test]
    fn what_json_cannot_hold_is_described() {
        let tensors = [
            tensor("half", Datatype::Fp16, b"\0\0\0\0"),
            tensor("secret", Datatype::Uint8, b"\x01\x02"),
            tensor("short", Datatype::Int32, b"\x01"),
        ];
        let payload = Payload { id: "", model: "m", version: 3, side: "outputs", parameters: &[], tensors: &tensors };
        let expected = json!({
            "model_name": "m", "model_version": "3",
            "outputs": [
                {"name": "half", "datatype": "FP16", "shape": [2]},
                {"name": "secret", "datatype": "UINT8", "shape": [2]},
                {"name": "short", "datatype": "INT32", "shape": [2]},
            ],
        });
        assert_eq!(document(payload, &["secret"]), expected);
    }
}
