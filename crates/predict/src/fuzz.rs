//! The fuzzer of `:predict`: what must hold of any body, and of the answer that repeats its tensors.

use alipes_protocol::codec::elements;
use alipes_protocol::codec::json::DecodeOptions;
use alipes_protocol::codec::json::value::Value;
use alipes_protocol::shape::element_count;
use alipes_protocol::{Datatype, InferError, InferResponse, Shape};
use alipes_testkit::fuzz::{Choices, Fuzzer};
use alipes_testkit::memory::{CountedAllocator, within_reserved};

use super::{
    CloudEvent, InstanceAxis, PredictForm, PredictInput, PredictModel, PredictRequest, decode_event, decode_predict,
    encode_predictions, split,
};

#[global_allocator]
static ALLOCATOR: CountedAllocator = CountedAllocator;

/// Largest text, and largest tensor from it, in bytes.
const MAX_INPUT_BYTES: usize = 1 << 16;

/// Most bytes that decoding holds without having asked for them: beside everything, and for each byte of a text that is
/// refused, whose parts nobody can count.
const BYTES_BESIDE: usize = 8 << 10;
const BYTES_PER_BYTE: usize = 16;

/// Most bytes of an error's text beside what it quotes.
const TEXT_BYTES: usize = 512;

const WORDS: [&str; 26] = [
    "\"specversion\":\"1.0\",",
    "\"id\":\"\",\"source\":\"\",\"type\":\"\",",
    "\"data\":{",
    "\"data_base64\":",
    "\"instances\":[",
    "\"inputs\":[",
    "\"inputs\":{",
    "\"signature_name\":\"\"",
    "\"A\":[1,2]",
    "\"TEXT\":",
    "\"HALF\":",
    "\"OPEN\":[[1],[2]]",
    "{\"b64\":\"YQ==\"}",
    "[[1,2],[3,4]]",
    "true",
    "null",
    "NaN",
    "-Infinity",
    "1e308",
    "1e-320",
    "-0.0",
    "18446744073709551615",
    "-9223372036854775808",
    "\\u00e9",
    "\\ud83d\\ude00",
    "[],",
];

/// Bytes of an input's end that choose the model.
const CHOICES: usize = 1;

/// Chooses that the input is an event in one object.
const STRUCTURED: u8 = 4;

const AXES: [InstanceAxis; 3] = [InstanceAxis::Batch, InstanceAxis::First, InstanceAxis::Whole];

#[test]
fn whatever_predict_is_sent_fits_the_declared_inputs() {
    let bodies = [
        r#"{"instances":[{"A":[1,2],"TEXT":"a"},{"A":[3,4],"TEXT":{"b64":"YQ=="}}]}"#,
        r#"{"instances":[[1,2],[3,4]],"signature_name":"serving_default"}"#,
        r#"{"inputs":{"A":[[1,2]],"HALF":[0.5],"OPEN":[[[1],[2]]]}}"#,
        r#"{"inputs":[[1,2],[3,4]]}"#,
        r#"{"instances":[{"OPEN":[[1,2,3],[4,5,6]]},{"OPEN":[[1,2,3],[4,5,NaN]]}]}"#,
    ];
    let head = r#"{"specversion":"1.0","id":"1","source":"s","type":"t","team":{"a":[1]},"data":"#;
    let seeds = bodies.iter().flat_map(|body| {
        let event = format!("{head}{body}}}");
        let plain = (0..4_u8).map(|choice| Choices::seed(body.as_bytes(), &[choice]));
        plain.chain((0..4_u8).map(move |choice| Choices::seed(event.as_bytes(), &[choice | STRUCTURED])))
    });
    Fuzzer::new("json-predict", seeds.collect::<Vec<_>>()).words(WORDS).run(check);
}

fn input(name: &str, datatype: Datatype, instance: &[i64], optional: bool) -> PredictInput {
    PredictInput { name: name.into(), datatype, instance: Shape::from_slice(instance), optional }
}

fn model(choice: usize) -> PredictModel {
    let several = [
        input("A", Datatype::Int32, &[2], false),
        input("TEXT", Datatype::Bytes, &[1], true),
        input("HALF", Datatype::Fp16, &[], true),
        input("OPEN", Datatype::Fp32, &[2, -1], true),
    ];
    let inputs = match choice {
        3 => vec![input("A", Datatype::Fp64, &[-1], false)],
        _ => several.to_vec(),
    };
    PredictModel { name: "m".to_owned(), inputs, axis: AXES[choice % AXES.len()] }
}

fn check(bytes: &[u8]) {
    let (text, mut choices) = Choices::split(bytes, CHOICES);
    let choice = choices.byte();
    let model = model(usize::from(choice % 4));
    let mut event = (choice & STRUCTURED != 0).then(|| CloudEvent::structured(true));
    let decoded = measured(text.len(), |options| match &mut event {
        Some(event) => decode_event(text, &model, options, event),
        None => decode_predict(text, &model, options),
    });
    match decoded {
        Ok(request) => {
            let written = check_request(&model, &request);
            event.iter().for_each(|event| check_answer(event, &written));
        }
        Err(error) => {
            assert!(!error.message.is_empty());
            // A byte that is no text is quoted as three.
            assert!(error.message.len() <= TEXT_BYTES + 3 * text.len(), "{}", error.message.len());
        }
    }
}

/// What is decoded, after checking that the memory which it took was asked for.
fn measured(
    length: usize,
    decode: impl FnOnce(DecodeOptions<'_>) -> Result<PredictRequest, InferError>,
) -> Result<PredictRequest, InferError> {
    within_reserved(
        |memory| decode(DecodeOptions { memory: Some(memory), ..DecodeOptions::from(MAX_INPUT_BYTES) }),
        |outcome| BYTES_BESIDE + if outcome.is_err() { BYTES_PER_BYTE * length } else { 0 },
    )
}

/// A response without outputs.
pub fn nothing() -> InferResponse {
    let (parameters, outputs) = (Vec::new(), Vec::new());
    InferResponse { id: "".into(), model_name: "m".into(), model_version: 1, parameters, outputs }
}

/// The event that answers has the data as it stands, and each attribute once.
fn check_answer(event: &CloudEvent, data: &[u8]) {
    let answer = event.answer(["\"i\"", "s", "t", "now"]);
    let written = answer.around(data).expect("one object");
    let document = Value::parse(&written).expect("an event");
    assert_eq!(document.member("data").map(Value::as_it_stands), Ok(data));
    assert_eq!(document.members().map(Iterator::count), Ok(answer.attributes.len() + 1));
    for (name, value) in &answer.attributes {
        assert_eq!(document.member(name).map(Value::as_it_stands), Ok(&value[..]), "{name}");
    }
}

/// The answer that repeats its tensors, after checking both.
fn check_request(model: &PredictModel, request: &PredictRequest) -> Vec<u8> {
    assert!(!request.inputs.is_empty());
    for tensor in &request.inputs {
        let declared = model.inputs.iter().find(|input| input.name == tensor.name).expect("an input of the model");
        let sizes = &tensor.shape[tensor.shape.len() - declared.instance.len()..];
        assert!(sizes.iter().zip(&declared.instance).all(|(&size, &wanted)| wanted < 0 || wanted == size));
        let count = element_count(&tensor.shape).expect("the elements were counted");
        match tensor.datatype.size() {
            Some(size) => assert_eq!(tensor.data.len(), count * size),
            None => assert_eq!(elements::count(&tensor.data), Ok(count)),
        }
    }
    let is_whole = model.axis == InstanceAxis::Whole;
    let parts = match request.stacked {
        Some(instances) => {
            assert!(instances > 0 && request.inputs.iter().all(|tensor| tensor.shape[0] == instances as i64));
            split(&request.inputs, instances, 3, is_whole)
        }
        None => vec![request.inputs.clone()],
    };
    for (index, tensor) in request.inputs.iter().enumerate() {
        let data: Vec<u8> = parts.iter().flat_map(|part| part[index].data.to_vec()).collect();
        assert_eq!(data, tensor.data, "the parts are the whole");
    }
    let responses: Vec<InferResponse> =
        parts.into_iter().map(|outputs| InferResponse { outputs, ..nothing() }).collect();
    let rows: Option<Vec<usize>> = request
        .stacked
        .filter(|_| !is_whole)
        .map(|_| responses.iter().map(|response| response.outputs[0].shape[0] as usize).collect());
    let form = if request.stacked.is_some() { request.form } else { PredictForm::Columns };
    let written = encode_predictions(form, &responses, rows.as_deref()).expect("its own tensors");
    assert!(serde_json::from_slice::<serde_json::Value>(&written).is_ok(), "{}", String::from_utf8_lossy(&written));
    assert!(Value::parse(&written).is_ok_and(Value::is_object));
    written
}
