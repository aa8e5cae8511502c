//! Tensors in memory that the caller shares: what both codecs make of the parameters that say so.

use alipes_protocol::codec::json::{decode_request, encode_response};
use alipes_protocol::codec::proto::inference::infer_parameter::ParameterChoice;
use alipes_protocol::codec::proto::inference::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};
use alipes_protocol::codec::proto::inference::{InferParameter, ModelInferRequest};
use alipes_protocol::codec::proto::{self, ResponseMessage};
use alipes_protocol::{
    Datatype, InferError, InferRequest, InferResponse, RegionSlice, Regions, RequestedOutput, Tensor, TritonRelease,
};
use bytes::Bytes;

/// Regions that have everything, and remember what was asked for.
#[derive(Default)]
struct Everything(Vec<String>);

impl Regions for Everything {
    fn input(&mut self, slice: RegionSlice<'_>, datatype: Datatype, shape: &[i64]) -> Result<Bytes, InferError> {
        self.0.push(format!("{datatype}{shape:?} {}+{}..{}", slice.name, slice.offset, slice.byte_size));
        Ok(Bytes::from(vec![7; slice.byte_size as usize]))
    }

    fn output(&mut self, slice: RegionSlice<'_>, output: &str) -> Result<(), InferError> {
        self.0.push(format!("{output} {}+{}..{}", slice.name, slice.offset, slice.byte_size));
        Ok(())
    }
}

const JSON: &str = r#"{
    "inputs": [
        {"name": "A", "shape": [1, 2], "datatype": "FP32", "parameters": {"shared_memory_region": "in",
            "shared_memory_byte_size": 8}},
        {"name": "B", "shape": [2], "datatype": "INT8", "data": [1, 2]},
        {"name": "C", "shape": [4], "datatype": "UINT8", "parameters": {"shared_memory_region": "in",
            "shared_memory_offset": 8, "shared_memory_byte_size": 4}}
    ],
    "outputs": [
        {"name": "Y", "parameters": {"shared_memory_region": "out", "shared_memory_byte_size": 16}},
        {"name": "Z", "parameters": {"binary_data": true}}
    ]
}"#;

const EXPECTED: [&str; 3] = ["FP32[1, 2] in+0..8", "UINT8[4] in+8..4", "Y out+0..16"];

fn check(request: &InferRequest, seen: &Everything) {
    assert_eq!(seen.0, EXPECTED);
    let data: Vec<&[u8]> = request.inputs.iter().map(|input| &input.data[..]).collect();
    assert_eq!(data, [&[7; 8][..], &[1, 2], &[7; 4]]);
    let in_region: Vec<bool> = request.outputs.iter().map(|output| output.in_region).collect();
    assert_eq!(in_region, [true, false]);
}

#[test]
fn json_places_tensors_in_regions_beside_others() {
    let mut regions = Everything::default();
    let request = decode_request(&Bytes::from(JSON), None, "m", 1 << 20, &mut regions).unwrap();
    check(&request, &regions);
}

#[test]
fn a_message_places_tensors_in_regions_beside_others() {
    let text = |value: &str| InferParameter { parameter_choice: Some(ParameterChoice::StringParam(value.to_owned())) };
    let number = |value| InferParameter { parameter_choice: Some(ParameterChoice::Int64Param(value)) };
    let place = |region: &str, offset, size| {
        let mut parameters = vec![("shared_memory_region", text(region)), ("shared_memory_byte_size", number(size))];
        if offset > 0 {
            parameters.push(("shared_memory_offset", number(offset)));
        }
        parameters.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    };
    let input = |name: &str, datatype: &str, shape: &[i64], parameters| InferInputTensor {
        name: name.to_owned(),
        datatype: datatype.to_owned(),
        shape: shape.to_vec(),
        parameters,
        ..Default::default()
    };
    let output = |name: &str, parameters| InferRequestedOutputTensor { name: name.to_owned(), parameters };
    let message = ModelInferRequest {
        inputs: vec![
            input("A", "FP32", &[1, 2], place("in", 0, 8)),
            input("B", "INT8", &[2], Default::default()),
            input("C", "UINT8", &[4], place("in", 8, 4)),
        ],
        outputs: vec![output("Y", place("out", 0, 16)), output("Z", Default::default())],
        raw_input_contents: vec![Bytes::from_static(&[1, 2])],
        ..Default::default()
    };
    let mut regions = Everything::default();
    let request = proto::decode_request(message, TritonRelease::default(), &mut regions).unwrap();
    check(&request, &regions);
}

#[test]
fn a_negative_number_lies_beyond_any_region() {
    let parameters = [
        ("shared_memory_region", ParameterChoice::StringParam("in".to_owned())),
        ("shared_memory_offset", ParameterChoice::Int64Param(-1)),
        ("shared_memory_byte_size", ParameterChoice::Int64Param(0)),
    ];
    let parameter = |(key, choice): (&str, _)| (key.to_owned(), InferParameter { parameter_choice: Some(choice) });
    let input = InferInputTensor {
        datatype: "FP32".to_owned(),
        parameters: parameters.into_iter().map(parameter).collect(),
        ..Default::default()
    };
    let mut regions = Everything::default();
    let _ = proto::decode_request(
        ModelInferRequest { inputs: vec![input], ..Default::default() },
        TritonRelease::default(),
        &mut regions,
    );
    assert_eq!(regions.0, [format!("FP32[] in+{}..0", u64::MAX)]);
}

#[test]
fn an_output_in_a_region_is_described_without_its_data() {
    let tensor = |name: &str, data: &'static [u8]| Tensor {
        name: name.into(),
        datatype: Datatype::Fp16,
        shape: [1].into_iter().collect(),
        data: Bytes::from_static(data),
    };
    let response = InferResponse {
        id: "".into(),
        model_name: "m".into(),
        model_version: 1,
        parameters: Vec::new(),
        outputs: vec![tensor("Y", &[]), tensor("Z", &[1, 2])],
    };
    let output = |name: &str, in_region: bool| RequestedOutput {
        name: name.into(),
        binary: Some(!in_region),
        in_region,
        ..Default::default()
    };
    let encoded = encode_response(&response, &[output("Y", true), output("Z", false)], true).unwrap();
    let head = r#"{"model_name":"m","model_version":"1","outputs":[{"name":"Y","datatype":"FP16","shape":[1]},{"name":"Z","datatype":"FP16","shape":[1],"parameters":{"binary_data_size":2}}]}"#;
    assert_eq!(String::from_utf8(encoded.head).unwrap(), head);
    assert_eq!(encoded.tail, [Bytes::from_static(&[1, 2])]);
    // An empty entry keeps the place of the others.
    let wire = ResponseMessage::from(&response).pieces(&[]).concat();
    let read: proto::inference::ModelInferResponse = prost::Message::decode(&wire[..]).unwrap();
    assert_eq!(read.raw_output_contents, [Bytes::new(), Bytes::from_static(&[1, 2])]);
}
