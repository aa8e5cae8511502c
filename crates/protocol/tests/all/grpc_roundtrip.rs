//! Whatever a request or response says, its message says the same.

use alipes_protocol::codec::proto::inference::infer_parameter::ParameterChoice;
use alipes_protocol::codec::proto::inference::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};
use alipes_protocol::codec::proto::inference::{InferParameter, ModelInferRequest, ModelInferResponse};
use alipes_protocol::codec::proto::{ResponseMessage, decode_request};
use alipes_protocol::{
    CorrelationId, Datatype, InferRequest, InferResponse, NoRegions, Parameter, RequestedOutput, SequenceInfo, Tensor,
    TritonRelease,
};
use bytes::Bytes;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use prost::Message;

proptest! {
    #[test]
    fn a_request_survives_its_message(request in requests()) {
        let wire = Bytes::from(message(&request).encode_to_vec());
        let read = decode_request(ModelInferRequest::decode(wire).unwrap(), TritonRelease::default(), &mut NoRegions);
        prop_assert_eq!(read, Ok(request));
    }

    #[test]
    fn a_response_survives_its_message(response in responses()) {
        let wire = wire_of(&response);
        prop_assert_eq!(read_response(ModelInferResponse::decode(wire).unwrap()), response);
    }

    #[test]
    fn any_bytes_are_a_request_or_an_error(wire in vec(any::<u8>(), 0..200)) {
        if let Ok(message) = ModelInferRequest::decode(Bytes::from(wire)) {
            let inputs = message.inputs.len();
            if let Ok(request) = decode_request(message, TritonRelease::default(), &mut NoRegions) {
                prop_assert_eq!(request.inputs.len(), inputs);
            }
        }
    }
}

fn tensors() -> impl Strategy<Value = Tensor> {
    let datatype = (0..Datatype::ALL.len()).prop_map(|index| Datatype::ALL[index]);
    (".{0,40}", datatype, vec(any::<i64>(), 0..5), vec(any::<u8>(), 0..40)).prop_map(|(name, datatype, shape, data)| {
        Tensor { name: name.into(), datatype, shape: shape.into(), data: data.into() }
    })
}

/// Parameters that no protocol key hides among.
fn parameters() -> impl Strategy<Value = Vec<(String, Parameter)>> {
    let value = prop_oneof![
        any::<bool>().prop_map(Parameter::Bool),
        any::<i64>().prop_map(Parameter::Int64),
        (-1e300..1e300).prop_map(Parameter::Double),
        ".{0,10}".prop_map(Parameter::String),
    ];
    btree_map("x.{0,8}", value, 0..4).prop_map(|parameters| parameters.into_iter().collect())
}

fn sequences() -> impl Strategy<Value = SequenceInfo> {
    let id = prop_oneof![any::<u64>().prop_map(CorrelationId::Number), ".{0,9}".prop_map(CorrelationId::Text)];
    (id, any::<bool>(), any::<bool>()).prop_map(|(correlation_id, start, end)| SequenceInfo {
        correlation_id,
        start,
        end,
    })
}

fn requests() -> impl Strategy<Value = InferRequest> {
    // By their names: a later release refuses an output that comes again.
    let outputs = btree_map(".{0,30}", 0..5_u32, 0..3).prop_map(|outputs| outputs.into_iter().map(output_of).collect());
    (".{0,30}", vec(tensors(), 0..4), outputs, parameters(), sequences(), any::<u64>(), any::<u64>()).prop_map(
        |(id, inputs, outputs, parameters, sequence, priority, timeout_us)| InferRequest {
            id: id.into(),
            inputs,
            outputs,
            parameters,
            sequence,
            priority,
            timeout_us,
            ..InferRequest::default()
        },
    )
}

fn output_of((name, classification): (String, u32)) -> RequestedOutput {
    RequestedOutput { name: name.into(), binary: None, classification, in_region: false }
}

fn responses() -> impl Strategy<Value = InferResponse> {
    (".{0,30}", ".{0,30}", any::<i64>(), parameters(), vec(tensors(), 0..4)).prop_map(
        |(id, model_name, model_version, parameters, outputs)| InferResponse {
            id: id.into(),
            model_name: model_name.into(),
            model_version,
            parameters,
            outputs,
        },
    )
}

/// The message that a client would send for the request.
fn message(request: &InferRequest) -> ModelInferRequest {
    let own = request.parameters.iter().map(|(key, value)| (key.clone(), choice(value)));
    let sequence_id = match &request.sequence.correlation_id {
        CorrelationId::Number(id) => ParameterChoice::Int64Param(*id as i64),
        CorrelationId::Text(id) => ParameterChoice::StringParam(id.clone()),
    };
    let protocol = [
        ("sequence_id", sequence_id),
        ("sequence_start", ParameterChoice::BoolParam(request.sequence.start)),
        ("sequence_end", ParameterChoice::BoolParam(request.sequence.end)),
        ("priority", ParameterChoice::Uint64Param(request.priority)),
        ("timeout", ParameterChoice::Int64Param(request.timeout_us as i64)),
    ];
    let protocol = protocol.into_iter().map(|(key, choice)| (key.to_owned(), choice));
    ModelInferRequest {
        id: request.id.to_string(),
        parameters: own.chain(protocol).map(|(key, choice)| (key, parameter(choice))).collect(),
        inputs: request.inputs.iter().map(input).collect(),
        outputs: request.outputs.iter().map(output).collect(),
        raw_input_contents: request.inputs.iter().map(|input| input.data.clone()).collect(),
        ..Default::default()
    }
}

fn input(tensor: &Tensor) -> InferInputTensor {
    InferInputTensor {
        name: tensor.name.to_string(),
        datatype: tensor.datatype.to_string(),
        shape: tensor.shape.to_vec(),
        ..Default::default()
    }
}

fn output(output: &RequestedOutput) -> InferRequestedOutputTensor {
    let classes = ParameterChoice::Int64Param(output.classification.into());
    let parameters = (output.classification > 0).then(|| ("classification".to_owned(), parameter(classes)));
    InferRequestedOutputTensor { name: output.name.to_string(), parameters: parameters.into_iter().collect() }
}

fn wire_of(response: &InferResponse) -> Bytes {
    let message = ResponseMessage::from(response);
    let wire = message.pieces(&[]).concat();
    assert_eq!(wire.len(), message.encoded_len());
    wire.into()
}

fn read_response(message: ModelInferResponse) -> InferResponse {
    let outputs = message.outputs.into_iter().zip(message.raw_output_contents);
    InferResponse {
        id: message.id.into(),
        model_name: message.model_name.into(),
        model_version: message.model_version.parse().unwrap(),
        parameters: message.parameters.into_iter().map(|(key, value)| (key, read_value(value))).collect(),
        outputs: outputs
            .map(|(output, data)| Tensor {
                name: output.name.into(),
                datatype: Datatype::from_name(&output.datatype).unwrap(),
                shape: output.shape.into(),
                data,
            })
            .collect(),
    }
}

fn choice(value: &Parameter) -> ParameterChoice {
    match value.clone() {
        Parameter::Bool(value) => ParameterChoice::BoolParam(value),
        Parameter::Int64(value) => ParameterChoice::Int64Param(value),
        Parameter::Double(value) => ParameterChoice::DoubleParam(value),
        Parameter::String(value) => ParameterChoice::StringParam(value),
    }
}

fn parameter(choice: ParameterChoice) -> InferParameter {
    InferParameter { parameter_choice: Some(choice) }
}

fn read_value(parameter: InferParameter) -> Parameter {
    match parameter.parameter_choice.unwrap() {
        ParameterChoice::BoolParam(value) => Parameter::Bool(value),
        ParameterChoice::Int64Param(value) => Parameter::Int64(value),
        ParameterChoice::DoubleParam(value) => Parameter::Double(value),
        ParameterChoice::StringParam(value) => Parameter::String(value),
        ParameterChoice::Uint64Param(_) => panic!("no response carries an unsigned parameter"),
    }
}
