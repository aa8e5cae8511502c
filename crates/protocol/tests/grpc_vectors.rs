//! The gRPC codec against the golden wire vectors.

use alipes_protocol::codec::proto::inference::ModelInferRequest;
use alipes_protocol::codec::proto::{decode_request, encode_response};
use alipes_protocol::{
    Code, CorrelationId, Datatype, InferError, InferRequest, InferResponse, Parameter, RequestedOutput, SequenceInfo,
    Tensor,
};
use bytes::Bytes;
use prost::Message;
use serde_json::Value;

const REQUESTS: &str = include_str!("../../../tests/vectors/grpc/requests.json");
const RESPONSES: &str = include_str!("../../../tests/vectors/grpc/responses.json");

#[test]
fn every_request_vector_is_read_as_it_says() {
    for vector in vectors(REQUESTS) {
        let message = ModelInferRequest::decode(Bytes::from(hex(&vector["wire"]))).expect("a message");
        let read = decode_request(message);
        match vector.get("error") {
            Some(error) => assert_eq!(read, Err(expected_error(error)), "{}", vector["fact"]),
            None => assert_eq!(read, Ok(expected_request(&vector["request"])), "{}", vector["fact"]),
        }
    }
}

#[test]
fn every_response_vector_is_written_as_it_says() {
    for vector in vectors(RESPONSES) {
        let message = encode_response(given_response(&vector["response"]));
        assert_eq!(message.encode_to_vec(), hex(&vector["wire"]), "{}", vector["fact"]);
    }
}

fn vectors(text: &str) -> Vec<Value> {
    let vectors: Vec<Value> = serde_json::from_str(text).expect("a list of vectors");
    assert!(!vectors.is_empty());
    vectors
}

fn expected_error(error: &Value) -> InferError {
    let code = match text(&error["code"]).as_str() {
        "NOT_FOUND" => Code::NotFound,
        "INVALID_ARGUMENT" => Code::InvalidArgument,
        other => panic!("a code without a meaning here: {other}"),
    };
    InferError::new(code, text(&error["message"]))
}

fn expected_request(request: &Value) -> InferRequest {
    let outputs = list(&request["outputs"]).iter().map(|output| RequestedOutput {
        name: text(&output["name"]).into(),
        binary: None,
        classification: output["classification"].as_u64().unwrap() as u32,
    });
    let sequence = &request["sequence"];
    let correlation_id = match &sequence["id"] {
        Value::String(id) => CorrelationId::Text(id.clone()),
        id => CorrelationId::Number(id.as_u64().unwrap()),
    };
    InferRequest {
        id: text(&request["id"]).into(),
        inputs: list(&request["inputs"]).iter().map(tensor).collect(),
        outputs: outputs.collect(),
        parameters: parameters(&request["parameters"]),
        sequence: SequenceInfo {
            correlation_id,
            start: sequence["start"].as_bool().unwrap(),
            end: sequence["end"].as_bool().unwrap(),
        },
        priority: request["priority"].as_u64().unwrap(),
        timeout_us: request["timeout_us"].as_u64().unwrap(),
        ..InferRequest::default()
    }
}

fn given_response(response: &Value) -> InferResponse {
    InferResponse {
        id: text(&response["id"]).into(),
        model_name: text(&response["model_name"]).into(),
        model_version: response["model_version"].as_i64().unwrap(),
        parameters: parameters(&response["parameters"]),
        outputs: list(&response["outputs"]).iter().map(tensor).collect(),
    }
}

fn parameters(parameters: &Value) -> Vec<(String, Parameter)> {
    let value = |value: &Value| match value {
        Value::Bool(value) => Parameter::Bool(*value),
        Value::String(value) => Parameter::String(value.clone()),
        value => value.as_i64().map_or_else(|| Parameter::Double(value.as_f64().unwrap()), Parameter::Int64),
    };
    parameters.as_object().unwrap().iter().map(|(key, each)| (key.clone(), value(each))).collect()
}

fn tensor(tensor: &Value) -> Tensor {
    Tensor {
        name: text(&tensor["name"]).into(),
        datatype: Datatype::from_name(&text(&tensor["datatype"])).unwrap(),
        shape: list(&tensor["shape"]).iter().map(|size| size.as_i64().unwrap()).collect(),
        data: hex(&tensor["data"]).into(),
    }
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn hex(value: &Value) -> Vec<u8> {
    let digits = value.as_str().unwrap();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}
