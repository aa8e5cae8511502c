//! Fuzzers of the JSON decoders, and what must hold of whatever they read.

use std::cell::Cell;

use alipes_testkit::corpus::{self, JsonRequest};
use alipes_testkit::fuzz::{Choices, Fuzzer};
use alipes_testkit::memory::{CountedAllocator, within_reserved};
use bytes::Bytes;

use super::value::Value;
use super::{
    DeclaredInput, DecodeContext, DecodeOptions, decode_generate, decode_request, encode_generated, encode_response,
};
use super::{exact, fast};
use crate::codec::binary::Tail;
use crate::codec::elements;
use crate::limits::{JSON_MAX_DEPTH, MAX_DIMENSIONS};
use crate::{Code, Datatype, InferError, InferRequest, InferResponse, NoRegions, Shape, Tensor};

#[global_allocator]
static ALLOCATOR: CountedAllocator = CountedAllocator;

/// Largest text, and largest tensor from it, in bytes.
const MAX_INPUT_BYTES: usize = 1 << 16;

/// Bytes of an input's end that choose the length of the JSON.
const CHOICES: usize = 2;

/// Most bytes that decoding holds without having asked for them: for each input, output and parameter, in a list that
/// has room for as many again, and beside them. What is refused has entries that nobody can count; each takes some
/// bytes of the text.
const BYTES_PER_ENTRY: usize = 768;
const BYTES_PER_BYTE: usize = 16;
const BYTES_BESIDE: usize = 4 << 10;

/// Most bytes of an error's text beside what it quotes.
const TEXT_BYTES: usize = 512;

const WORDS: [&str; 44] = [
    "\"inputs\":[",
    "\"outputs\":[",
    "\"name\":\"A\"",
    "\"shape\":[",
    "\"datatype\":\"",
    "\"data\":[",
    "\"parameters\":{",
    "\"id\":\"",
    "\"binary_data\":true",
    "\"binary_data_size\":4",
    "\"binary_data_output\":true",
    "\"classification\":1",
    "\"sequence_id\":",
    "\"sequence_start\":true",
    "\"sequence_end\":true",
    "\"priority\":",
    "\"timeout\":",
    "\"shared_memory_region\":\"",
    "\"shared_memory_offset\":",
    "\"shared_memory_byte_size\":",
    "\"triton_enable_empty_final_response\":true",
    "BOOL",
    "UINT8",
    "INT64",
    "UINT64",
    "FP16",
    "BF16",
    "FP32",
    "FP64",
    "BYTES",
    "true",
    "false",
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
    "TEXT",
    "ROWS",
];

#[test]
fn whatever_a_body_says_both_ways_read_it_alike() {
    let seed = |request: JsonRequest| {
        let length = request.tail.as_ref().map_or(0, |_| request.json.len() as u16 + 1);
        Choices::seed(&request.body(), &length.to_le_bytes())
    };
    let seeds: Vec<Vec<u8>> = corpus::json_requests().into_iter().map(seed).collect();
    Fuzzer::new("json-request", seeds).words(WORDS).run(check_request);
}

#[test]
fn whatever_generate_is_sent_fits_the_declared_inputs() {
    let flat = [
        r#"{"id":"i","TEXT":"a","depth":2,"parameters":{"ROWS":[1,2,3,4],"flag":true}}"#,
        r#"{"TEXT":["a","b"],"OPEN":[0.5,1,2,-3e5],"BOOLS":[true,false]}"#,
        r#"{"ROWS":[[1,2],[3,4]],"HALF":1,"x":1.5,"y":null,"z":"\u00e9"}"#,
    ];
    let seeds = flat.iter().map(|text| text.as_bytes().to_vec());
    Fuzzer::new("json-generate", seeds).words(WORDS).run(check_generate);
}

fn check_request(input: &[u8]) {
    let (body, mut choices) = Choices::split(input, CHOICES);
    let body = Bytes::copy_from_slice(body);
    let header_length = choices.below(1 << 16).checked_sub(1);
    let outcome = measured(body.len(), |options| decode_request(&body, header_length, "m", options, &mut NoRegions));
    match &outcome {
        Ok(request) => check_tensors(request, &body),
        Err(error) => check_error(error, body.len()),
    }
    let text = body.get(..header_length.unwrap_or(body.len())).unwrap_or_default();
    check_agreement(text, &body);
    check_document(text);
    if let Ok(request) = outcome {
        check_round_trip(request);
    }
}

/// What a decoder gives, after checking that it asked for the memory that it took.
fn measured(
    length: usize,
    decode: impl FnOnce(DecodeOptions<'_>) -> Result<InferRequest, InferError>,
) -> Result<InferRequest, InferError> {
    within_reserved(
        |memory| decode(DecodeOptions { memory: Some(memory), ..DecodeOptions::from(MAX_INPUT_BYTES) }),
        |outcome| {
            BYTES_BESIDE
                + match outcome {
                    Ok(request) => {
                        BYTES_PER_ENTRY * (request.inputs.len() + request.outputs.len() + request.parameters.len())
                    }
                    Err(_) => BYTES_PER_BYTE * length,
                }
        },
    )
}

fn check_error(error: &InferError, body_length: usize) {
    assert!(!error.message.is_empty());
    // A byte that is no text is quoted as three.
    assert!(error.message.len() <= TEXT_BYTES + 3 * body_length, "{}", error.message.len());
}

fn check_tensors(request: &InferRequest, body: &Bytes) {
    let lies_within = |data: &Bytes| !data.is_empty() && body.as_ptr_range().contains(&data.as_ptr());
    let slices = request.inputs.iter().filter(|input| lies_within(&input.data));
    let sliced: usize = slices.map(|input| input.data.len()).sum();
    assert!(sliced <= body.len(), "two inputs were given the same bytes");
    for input in &request.inputs {
        assert!(input.shape.len() <= MAX_DIMENSIONS);
        if lies_within(&input.data) {
            continue;
        }
        assert!(input.data.len() <= MAX_INPUT_BYTES);
        if let Some(size) = input.datatype.size() {
            let count = crate::shape::element_count(&input.shape).expect("the elements were counted");
            assert_eq!(input.data.len(), count * size, "data was read that the shape does not say");
        } else {
            assert!(elements::count(&input.data).is_ok(), "strings were written in halves");
        }
    }
}

/// The fast way gives the request of the exact way, or none.
fn check_agreement(text: &[u8], body: &Bytes) {
    let context = DecodeContext { model: "m", options: MAX_INPUT_BYTES.into(), reserved: &Cell::new(0) };
    let tail = || Tail::new(body.slice(text.len()..));
    if let Some(fast) = fast::decode(text, tail(), context) {
        let exact = exact::decode(text, tail(), context, &mut NoRegions);
        // As text, because NaN differs from itself.
        assert_eq!(format!("{:?}", Ok::<_, InferError>(fast)), format!("{exact:?}"));
    }
}

/// What another reader of JSON takes is JSON here too, but for `0e309`, which RapidJSON finds too big.
fn check_document(text: &[u8]) {
    if serde_json::from_slice::<serde_json::Value>(text).is_ok()
        && let Err(error) = Value::parse(text)
    {
        assert!(error.code == Code::TooLarge || error.message.contains("Number too big"), "{error:?}");
    }
    if let Ok(value) = Value::parse(text) {
        // The levels around a tensor's values do not count.
        assert!(depth(value) <= JSON_MAX_DEPTH + 3);
    }
}

fn depth(value: Value<'_>) -> usize {
    let elements = value.elements().into_iter().flatten().map(depth).max();
    let members = value.members().into_iter().flatten().map(|(_, value)| depth(value)).max();
    elements.max(members).unwrap_or(0) + usize::from(value.is_array() || value.is_object())
}

/// Inputs come back from a response that gives them as outputs, in binary and, where JSON carries them, as JSON.
fn check_round_trip(request: InferRequest) {
    let response = InferResponse { outputs: request.inputs, ..nothing() };
    let come_back = |response: &InferResponse, binary: bool| {
        let written = encode_response(response, &[], binary).ok()?;
        let head = String::from_utf8(written.head).expect("JSON is text");
        let head = head.replacen("\"outputs\":[", "\"inputs\":[", 1).into_bytes();
        let body = Bytes::from(written.tail.iter().fold(head.clone(), |body, slice| [&body[..], slice].concat()));
        Some(decode_request(&body, Some(head.len()), "m", usize::MAX, &mut NoRegions).expect("its own words").inputs)
    };
    assert_eq!(come_back(&response, true).as_ref(), Some(&response.outputs));
    let is_text = |tensor: &Tensor| match tensor.datatype {
        // Strings beyond those of the shape are not written.
        Datatype::Bytes => {
            let is_counted = elements::count(&tensor.data).ok() == crate::shape::element_count(&tensor.shape);
            is_counted && std::str::from_utf8(&tensor.data).is_ok()
        }
        Datatype::Bool => tensor.data.iter().all(|&value| value <= 1),
        _ => true,
    };
    // An empty tensor has no data to be read, whatever stands there.
    let is_plain = |tensor: &Tensor| is_text(tensor) && crate::shape::element_count(&tensor.shape) != Some(0);
    let outputs = response.outputs.into_iter().filter(is_plain).collect();
    let response = InferResponse { outputs, ..nothing() };
    if let Some(inputs) = come_back(&response, false) {
        assert_eq!(same_numbers(&inputs), same_numbers(&response.outputs));
    }
}

/// Tensors as text in which every NaN is the same, as in JSON.
fn same_numbers(tensors: &[Tensor]) -> String {
    let shown = tensors.iter().map(|tensor| match tensor.datatype {
        Datatype::Fp32 => {
            let numbers = tensor.data.chunks_exact(4).map(|it| f32::from_le_bytes(it.try_into().expect("four bytes")));
            format!("{} {:?} {:?}", tensor.name, tensor.shape, numbers.collect::<Vec<_>>())
        }
        Datatype::Fp64 => {
            let numbers = tensor.data.chunks_exact(8).map(|it| f64::from_le_bytes(it.try_into().expect("eight bytes")));
            format!("{} {:?} {:?}", tensor.name, tensor.shape, numbers.collect::<Vec<_>>())
        }
        _ => format!("{tensor:?}"),
    });
    shown.collect::<Vec<_>>().join("\n")
}

fn nothing() -> InferResponse {
    let (parameters, outputs) = (Vec::new(), Vec::new());
    InferResponse { id: "".into(), model_name: "m".into(), model_version: 1, parameters, outputs }
}

fn declared(name: &str) -> Option<DeclaredInput> {
    let (datatype, shape): (_, &[i64]) = match name {
        "TEXT" => (Datatype::Bytes, &[-1]),
        "ROWS" => (Datatype::Int32, &[-1, 4]),
        "HALF" => (Datatype::Fp16, &[1]),
        "OPEN" => (Datatype::Fp32, &[-1, 2, -1]),
        "BOOLS" => (Datatype::Bool, &[2]),
        _ => return None,
    };
    Some(DeclaredInput { datatype, shape: Shape::from_slice(shape) })
}

fn check_generate(text: &[u8]) {
    let request = match measured(text.len(), |options| decode_generate(text, "m", options, declared)) {
        Ok(request) => request,
        Err(error) => return check_error(&error, text.len()),
    };
    for input in &request.inputs {
        let declared = declared(&input.name).expect("an input that the model has");
        assert_eq!((input.datatype, input.shape.len()), (declared.datatype, declared.shape.len()));
        let fits = |(&size, &declared): (&i64, &i64)| declared < 0 || declared == size;
        assert!(input.shape.iter().zip(&declared.shape).all(fits), "{:?}", input.shape);
        match input.datatype.size() {
            Some(size) => assert_eq!(crate::shape::element_count(&input.shape), Some(input.data.len() / size)),
            // As many as the shape says is asked where binary tensors are.
            None => assert!(elements::count(&input.data).is_ok(), "strings were written in halves"),
        }
    }
    let parameters = request.parameters.iter().filter(|(key, _)| key != "id").cloned().collect();
    let response = InferResponse { outputs: request.inputs, parameters, ..nothing() };
    if let Ok(written) = encode_generated(&response) {
        assert!(Value::parse(&written).is_ok_and(Value::is_object), "{}", String::from_utf8_lossy(&written));
    }
}
