//! The JSON codec and inputs nobody thought of.

use alipes_protocol::codec::json::value::Value;
use alipes_protocol::codec::json::{decode_request, encode_response};
use alipes_protocol::codec::{binary, elements};
use alipes_protocol::{Datatype, InferResponse, NoRegions, Parameter, RequestedOutput, Tensor, TritonRelease};
use bytes::Bytes;
use proptest::prelude::*;

const MAX_INPUT_BYTES: usize = 1 << 20;

fn data(datatype: Datatype, count: usize) -> BoxedStrategy<Vec<u8>> {
    let bytes = |size: usize| proptest::collection::vec(any::<u8>(), size * count);
    match datatype {
        Datatype::Bool => proptest::collection::vec(0..2_u8, count).boxed(),
        Datatype::Bytes => proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), count)
            .prop_map(|strings| {
                let mut data = Vec::new();
                strings.iter().for_each(|string| elements::push(&mut data, string));
                data
            })
            .boxed(),
        Datatype::Fp32 => proptest::collection::vec(any::<f32>(), count)
            .prop_map(|values| values.iter().flat_map(|value| value.to_le_bytes()).collect())
            .boxed(),
        Datatype::Fp64 => proptest::collection::vec(any::<f64>(), count)
            .prop_map(|values| values.iter().flat_map(|value| value.to_le_bytes()).collect())
            .boxed(),
        _ => bytes(datatype.size().unwrap()).boxed(),
    }
}

fn tensor() -> impl Strategy<Value = Tensor> {
    let datatype = prop::sample::select(Datatype::ALL.to_vec());
    (datatype, 0..3_i64, 1..5_i64, "[A-Za-z0-9_\"é]{0,30}").prop_flat_map(|(datatype, rows, columns, name)| {
        data(datatype, (rows * columns) as usize).prop_map(move |data| Tensor {
            name: name.as_str().into(),
            datatype,
            shape: [rows, columns].into_iter().collect(),
            data: data.into(),
        })
    })
}

fn response() -> impl Strategy<Value = InferResponse> {
    let parameter = prop_oneof![
        any::<bool>().prop_map(Parameter::Bool),
        any::<i64>().prop_map(Parameter::Int64),
        any::<String>().prop_map(Parameter::String),
    ];
    let parameters = proptest::collection::btree_map("k[a-z\\\\\"]{0,5}", parameter, 0..3);
    (any::<String>(), parameters, proptest::collection::vec(tensor(), 0..4)).prop_map(|(id, parameters, outputs)| {
        InferResponse {
            id: id.into(),
            model_name: "m".into(),
            model_version: 1,
            parameters: parameters.into_iter().collect(),
            outputs,
        }
    })
}

/// The response's outputs as the inputs of a request, with the tail behind them.
fn as_request(response: &InferResponse, outputs: &[RequestedOutput], binary: bool) -> (Bytes, usize) {
    let encoded = encode_response(response, outputs, binary).unwrap();
    // A key is found by its quotation marks, which are escaped within strings.
    let head = String::from_utf8_lossy(&encoded.head).into_owned();
    assert_eq!(head.as_bytes(), encoded.head);
    let (before, after) = head.rsplit_once("\"outputs\":[").unwrap();
    let head = format!("{before}\"inputs\":[{after}");
    let body: Vec<u8> = encoded.tail.iter().fold(head.clone().into_bytes(), |body, slice| [&body[..], slice].concat());
    (body.into(), head.len())
}

/// Strings that are no UTF-8 would not survive the change of `outputs` into `inputs` here.
fn printable(tensor: &Tensor) -> bool {
    tensor.datatype != Datatype::Bytes || std::str::from_utf8(&tensor.data).is_ok()
}

fn json_carries(tensor: &Tensor) -> bool {
    !matches!(tensor.datatype, Datatype::Fp16 | Datatype::Bf16) && printable(tensor)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn binary_outputs_come_back_as_inputs(response in response()) {
        let (body, length) = as_request(&response, &[], true);
        let request = decode_request(&body, Some(length), "m", MAX_INPUT_BYTES, &mut NoRegions).unwrap();
        prop_assert_eq!(&request.inputs, &response.outputs);
        prop_assert_eq!(&request.id, &response.id);
        prop_assert_eq!(&request.parameters, &response.parameters);
    }

    #[test]
    fn json_outputs_come_back_as_inputs(mut response in response()) {
        response.outputs.retain(json_carries);
        let (body, length) = as_request(&response, &[], false);
        prop_assert_eq!(body.len(), length);
        let request = decode_request(&body, None, "m", MAX_INPUT_BYTES, &mut NoRegions).unwrap();
        prop_assert_eq!(&request.inputs, &response.outputs);
    }

    #[test]
    fn changed_bodies_are_answered(
        response in response(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        length in any::<prop::sample::Index>(),
    ) {
        let (body, _) = as_request(&response, &[], true);
        let mut body = body.to_vec();
        for (place, byte) in changes {
            let place = place.index(body.len());
            body[place] = byte;
        }
        let length = length.index(body.len() + 1);
        let body = Bytes::from(body);
        for length in [None, Some(length), Some(length + 1)] {
            // Either way is right; what matters is that there is an answer, and that it names something.
            if let Err(error) = decode_request(&body, length, "m", MAX_INPUT_BYTES, &mut NoRegions) {
                prop_assert!(!error.message.is_empty());
            }
        }
    }

    #[test]
    fn any_document_is_walked_to_its_end(text in proptest::collection::vec(prop_oneof![
        any::<u8>(),
        prop::sample::select(b"[]{}\",:0123456789.eE-+tfnINa \\u".to_vec()),
    ], 0..60)) {
        if let Ok(value) = Value::parse(&text) {
            visit(value);
        }
    }

    #[test]
    fn any_header_length_lies_within_the_body(value in any::<Vec<u8>>(), body in 0..1000_u64) {
        for release in TritonRelease::ALL {
            if let Ok(length) = binary::header_length(&value, Some(body), release) {
                prop_assert!(length as u64 <= body);
            }
        }
    }
}

/// Reads a value in every way that there is.
fn visit(value: Value<'_>) {
    let kinds = [
        value.is_null(),
        value.as_bool().is_ok(),
        value.as_f64().is_ok(),
        value.as_bytes().is_ok(),
        value.elements().is_ok(),
        value.members().is_ok(),
    ];
    assert_eq!(kinds.iter().filter(|kind| **kind).count(), 1, "{value:?}");
    value.elements().into_iter().flatten().for_each(visit);
    value.members().into_iter().flatten().for_each(|(_, value)| visit(value));
}
