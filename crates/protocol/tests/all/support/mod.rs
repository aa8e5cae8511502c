//! The golden wire vectors as values of this crate.

use alipes_protocol::{
    Code, CorrelationId, Datatype, InferError, InferRequest, InferResponse, Parameter, RequestedOutput, SequenceInfo,
    Tensor,
};
use serde_json::Value;

/// The vectors of a file, of which there is at least one.
pub fn vectors(text: &str) -> Vec<Value> {
    let vectors: Vec<Value> = serde_json::from_str(text).expect("a list of vectors");
    assert!(!vectors.is_empty());
    vectors
}

/// The error that a vector expects, as a request's.
pub fn error(error: &Value) -> InferError {
    let code = match text(&error["code"]).as_str() {
        "INTERNAL" => Code::Internal,
        "INVALID_ARGUMENT" => Code::InvalidArgument,
        "NOT_FOUND" => Code::NotFound,
        "TOO_LARGE" => Code::TooLarge,
        other => panic!("a code without a meaning here: {other}"),
    };
    InferError::new(code, text(&error["message"]))
}

/// The request that a vector means.
pub fn request(request: &Value) -> InferRequest {
    let sequence = &request["sequence"];
    let correlation_id = match &sequence["id"] {
        Value::String(id) => CorrelationId::Text(id.clone()),
        id => CorrelationId::Number(id.as_u64().unwrap()),
    };
    InferRequest {
        id: text(&request["id"]).into(),
        inputs: list(&request["inputs"]).iter().map(tensor).collect(),
        outputs: outputs(&request["outputs"]),
        parameters: parameters(&request["parameters"]),
        sequence: SequenceInfo {
            correlation_id,
            start: sequence["start"].as_bool().unwrap(),
            end: sequence["end"].as_bool().unwrap(),
        },
        priority: request["priority"].as_u64().unwrap(),
        timeout_us: request["timeout_us"].as_u64().unwrap(),
        empty_final_response: request["empty_final_response"].as_bool().unwrap_or(false),
        binary_by_default: request["binary_by_default"].as_bool().unwrap_or(false),
        ..InferRequest::default()
    }
}

/// The outputs that a vector asks for.
pub fn outputs(outputs: &Value) -> Vec<RequestedOutput> {
    let output = |output: &Value| RequestedOutput {
        name: text(&output["name"]).into(),
        binary: output["binary"].as_bool(),
        classification: output["classification"].as_u64().unwrap_or(0) as u32,
        in_region: false,
    };
    list(outputs).iter().map(output).collect()
}

/// The response that a vector gives.
pub fn response(response: &Value) -> InferResponse {
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

/// A list's elements.
pub fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap()
}

/// A string.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The bytes that hexadecimal digits stand for.
pub fn hex(value: &Value) -> Vec<u8> {
    let digits = value.as_str().unwrap();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}
