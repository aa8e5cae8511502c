//! What is written is read again as it was, in both forms, for every datatype.

use alipes_protocol::codec::elements;
use alipes_protocol::shape::element_count;
use alipes_protocol::{Datatype, InferResponse, Shape, Tensor};
use bytes::Bytes;
use proptest::prelude::*;

use super::{
    InstanceAxis, PredictForm, PredictInput, PredictModel, PredictRequest, decode_predict, encode_predictions, half,
    split,
};

/// Bytes of a tensor without numbers that are not finite, and with truth values of one bit.
fn data(datatype: Datatype, count: usize) -> BoxedStrategy<Vec<u8>> {
    let halves = move |bits: u16| if half::widen(datatype, bits).is_finite() { bits } else { 0 };
    let finite = |value: f64| if value.is_finite() { value } else { 0.0 };
    let bytes = |values: Vec<Vec<u8>>| values.concat();
    let each: BoxedStrategy<Vec<u8>> = match datatype {
        Datatype::Bool => any::<bool>().prop_map(|value| vec![u8::from(value)]).boxed(),
        Datatype::Fp16 | Datatype::Bf16 => {
            any::<u16>().prop_map(move |bits| halves(bits).to_le_bytes().to_vec()).boxed()
        }
        Datatype::Fp32 => {
            any::<f32>().prop_map(|value| if value.is_finite() { value } else { 0.0 }.to_le_bytes().to_vec()).boxed()
        }
        Datatype::Fp64 => any::<f64>().prop_map(move |value| finite(value).to_le_bytes().to_vec()).boxed(),
        Datatype::Bytes => {
            let text = prop_oneof![".{0,6}".prop_map(String::into_bytes), prop::collection::vec(any::<u8>(), 0..6)];
            text.prop_map(|text| {
                let mut element = Vec::new();
                elements::push(&mut element, &text);
                element
            })
            .boxed()
        }
        _ => prop::collection::vec(any::<u8>(), datatype.size().unwrap_or(1)).boxed(),
    };
    prop::collection::vec(each, count).prop_map(bytes).boxed()
}

fn tensor() -> impl Strategy<Value = Tensor> {
    let shape = (1..6_i64, prop::collection::vec(1..4_i64, 0..3));
    (prop::sample::select(Datatype::ALL.to_vec()), shape).prop_flat_map(|(datatype, (rows, sizes))| {
        let shape: Shape = [rows].into_iter().chain(sizes).collect();
        data(datatype, element_count(&shape).unwrap()).prop_map(move |data| Tensor {
            name: "x".into(),
            datatype,
            shape: shape.clone(),
            data: Bytes::from(data),
        })
    })
}

proptest! {
    #[test]
    fn what_an_answer_says_is_read_as_the_same_tensor(
        tensor in tensor(),
        most in 1..7_usize,
        is_named in any::<bool>(),
        form in prop::sample::select(vec![PredictForm::Rows, PredictForm::Columns]),
    ) {
        let rows = tensor.shape[0] as usize;
        let model = PredictModel {
            name: "m".to_owned(),
            inputs: vec![PredictInput {
                name: tensor.name.clone(),
                datatype: tensor.datatype,
                instance: tensor.shape[1..].iter().copied().collect(),
                optional: false,
            }],
            axis: InstanceAxis::Batch,
        };
        let parts = split(std::slice::from_ref(&tensor), rows, most, false);
        let counts: Vec<usize> = parts.iter().map(|part| part[0].shape[0] as usize).collect();
        let second = Tensor { name: "y".into(), ..tensor.clone() };
        let responses: Vec<InferResponse> = parts.into_iter().zip(split(&[second], rows, most, false))
            .map(|(mut outputs, others)| {
                if is_named { outputs.extend(others); }
                InferResponse { outputs, ..super::fuzz::nothing() }
            })
            .collect();
        let written = String::from_utf8(encode_predictions(form, &responses, Some(&counts)).unwrap()).unwrap();
        let body = written.replacen("\"predictions\":", "\"instances\":", 1).replacen("\"outputs\":", "\"inputs\":", 1);
        let mut model = model;
        if is_named {
            model.inputs.push(PredictInput { name: "y".into(), ..model.inputs[0].clone() });
        }
        let PredictRequest { form: read, inputs, stacked } =
            decode_predict(body.as_bytes(), &model, (1 << 20).into()).map_err(|error| {
                TestCaseError::fail(format!("{}: {body}", error.message))
            })?;
        prop_assert_eq!((read, stacked), (form, Some(rows)));
        prop_assert_eq!(inputs.len(), 1 + usize::from(is_named));
        prop_assert_eq!(&inputs[0], &tensor);
    }
}
