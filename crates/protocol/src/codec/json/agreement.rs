//! The fast way and the exact way give the same request wherever the fast way gives one.

use std::cell::Cell;

use bytes::Bytes;
use proptest::prelude::*;

use super::{DecodeContext, DecodeOptions, exact, fast};
use crate::InferRequest;
use crate::codec::binary::Tail;

/// Bytes behind the JSON, for inputs that say so.
const TAIL: &[u8] = &[1, 2, 3, 4];

/// What the fast way says, after checking that the exact way says the same, and that both ask for the memory that they
/// take.
fn agree(text: &[u8]) -> Result<Option<InferRequest>, TestCaseError> {
    let reserved = Cell::new(0);
    let options = DecodeOptions { memory: Some(&|_| Ok(())), ..DecodeOptions::from(1 << 20) };
    let context = DecodeContext { model: "m", options, reserved: &reserved };
    for tail in [&[][..], TAIL] {
        let body = Bytes::from([text, tail].concat());
        let Some(fast) = fast::decode(text, Tail::new(body.slice(text.len()..)), context) else { continue };
        let reserved_by_fast = reserved.take();
        let exact = exact::decode(text, Tail::new(body.slice(text.len()..)), context, &mut crate::NoRegions);
        let tensors: usize = fast.inputs.iter().map(|input| input.data.len()).sum();
        prop_assert!(tensors <= reserved_by_fast.min(reserved.take()) + tail.len());
        // Compared as text, because NaN differs from itself.
        prop_assert_eq!(format!("{:?}", Ok::<_, crate::InferError>(&fast)), format!("{:?}", exact.as_ref()));
        return Ok(Some(fast));
    }
    Ok(None)
}

fn digits(most: usize) -> BoxedStrategy<String> {
    proptest::collection::vec(0..10_u8, 1..=most).prop_map(|digits| digits.iter().map(u8::to_string).collect()).boxed()
}

/// Decimal texts of every length and form, most of them JSON.
fn decimal() -> impl Strategy<Value = String> {
    let integer = prop_oneof![
        Just("0".to_owned()),
        (1..10_u8, digits(25)).prop_map(|(first, rest)| format!("{first}{rest}")),
        any::<i64>().prop_map(|value| value.unsigned_abs().to_string()),
        any::<u64>().prop_map(|value| value.to_string())
    ];
    let fraction = prop_oneof![Just(String::new()), digits(30).prop_map(|digits| format!(".{digits}"))];
    let exponent = prop_oneof![
        3 => Just(String::new()),
        1 => (prop_oneof![Just("e"), Just("E-"), Just("e+"), Just("e-")], 0..400).prop_map(|(e, value)| format!("{e}{value}")),
    ];
    (any::<bool>(), integer, fraction, exponent).prop_map(|(minus, integer, fraction, exponent)| {
        format!("{}{integer}{fraction}{exponent}", if minus { "-" } else { "" })
    })
}

/// Numbers as languages print them, and what RapidJSON takes beyond JSON.
fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        decimal(),
        any::<f64>().prop_map(|value| format!("{value:e}")),
        any::<f32>().prop_map(|value| format!("{:?}", f64::from(value))),
        (-1.0..1.0_f64).prop_map(|value| format!("{value:?}")),
        (-3e3..3e3_f64).prop_map(|value| format!("{value:?}")),
        any::<i16>().prop_map(|value| value.to_string()),
        prop::sample::select(vec!["NaN", "-Infinity", "Inf", "-0", "-0.0", "0e309"]).prop_map(str::to_owned),
        prop::sample::select(vec!["007", "000000000012", "01.5", "00", "1.", ".5", "-", "--1", "+1", "1e", "0x1"])
            .prop_map(str::to_owned),
    ]
}

fn value(datatype: &str) -> BoxedStrategy<String> {
    let string = prop_oneof!["[a-zé ]{0,12}", Just("\\n\\u00e9\\ud83d\\ude00".to_owned())];
    match datatype {
        "BOOL" => any::<bool>().prop_map(|value| value.to_string()).boxed(),
        "BYTES" => string.prop_map(|text| format!("\"{text}\"")).boxed(),
        "FP32" | "FP64" => number().boxed(),
        _ => prop_oneof![
            any::<u64>().prop_map(|value| value.to_string()),
            any::<i64>().prop_map(|value| value.to_string()),
            (0..300_u64).prop_map(|value| value.to_string())
        ]
        .boxed(),
    }
}

fn input() -> impl Strategy<Value = String> {
    let datatype = prop::sample::select(vec![
        "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP32", "FP32", "FP64",
        "BYTES", "FP16",
    ]);
    let space = prop::sample::select(vec!["", " ", "\n\t"]);
    (datatype, 0..12_usize, any::<[bool; 3]>(), space).prop_flat_map(
        |(datatype, count, [nested, binary, late], space)| {
            proptest::collection::vec(value(datatype), count).prop_map(move |values| {
                let list = values.join(&format!("{space},{space}"));
                let list = if nested { format!("[[{list}],{space}[]]") } else { format!("[{space}{list}]") };
                let data = if binary && !late {
                    "\"parameters\":{\"binary_data_size\":4}".to_owned()
                } else {
                    format!("\"data\":{space}{list}")
                };
                let shape = format!("\"shape\":[{count}]");
                let (first, last) = if late { (data, shape) } else { (shape, data) };
                format!("{{\"name\":\"X\",{first},{space}\"datatype\"{space}:\"{datatype}\",{last}}}")
            })
        },
    )
}

fn document() -> impl Strategy<Value = String> {
    let parameters = prop::sample::select(vec![
        "",
        "\"parameters\":{\"binary_data_output\":true,\"k\":1.5},",
        "\"extra\":[{}],",
        "\"id\":\"i\",",
        "\"parameters\":{\"sequence_id\":5,\"sequence_end\":true},",
    ]);
    let outputs = prop::sample::select(vec![
        "",
        ",\"outputs\":[]",
        ",\"outputs\":[{\"name\":\"Y\",\"parameters\":{\"classification\":2}}]",
    ]);
    (parameters, proptest::collection::vec(input(), 0..3), outputs)
        .prop_map(|(parameters, inputs, outputs)| format!("{{{parameters}\"inputs\":[{}]{outputs}}}", inputs.join(",")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn requests_are_read_alike(text in document()) {
        agree(text.as_bytes())?;
    }

    #[test]
    fn changed_requests_are_read_alike(
        text in document(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), prop_oneof![any::<u8>(), prop::sample::select(b"[]{},:\"\\ 0-.eE".to_vec())]), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut text = text.into_bytes();
        for (place, byte) in changes {
            let place = place.index(text.len());
            text[place] = byte;
        }
        agree(&text)?;
        agree(&text[..cut.index(text.len())])?;
    }

    #[test]
    fn any_bytes_are_read_alike(text in proptest::collection::vec(any::<u8>(), 0..200)) {
        agree(&text)?;
    }

    #[test]
    fn every_number_is_read_alike(
        text in number(),
        datatype in prop::sample::select(vec!["FP32", "FP64", "INT64", "UINT64", "INT8"]),
    ) {
        for text in requests(datatype, &text) {
            agree(text.as_bytes())?;
        }
    }
}

/// Requests with a number in front of much other text, and near the end.
fn requests(datatype: &str, number: &str) -> [String; 2] {
    [r#","note":"so that the reader may look ahead""#, ""].map(|rest| {
        format!(
            r#"{{"inputs":[{{"name":"X","datatype":"{datatype}","shape":[3],"data":[{number},{number},1]{rest}}}]}}"#
        )
    })
}

#[test]
fn the_fast_way_takes_common_requests() {
    let common = [
        r#"{"id":"a","inputs":[{"name":"X","shape":[2,2],"datatype":"FP32","data":[[0.1,-2],[3e-5,0.8444218515250481]]}]}"#,
        r#"{"inputs":[{"data":["a","b\n"],"datatype":"BYTES","name":"X","shape":[2]}],"outputs":[{"name":"Y"}]}"#,
        r#"{"parameters":{"binary_data_output":true},"inputs":[{"name":"X","shape":[1],"datatype":"INT32","parameters":{"binary_data_size":4}}]}"#,
        r#"{ "inputs" : [ { "name" : "X", "shape" : [ 1 ], "datatype" : "INT64", "data" : [ -9223372036854775808 ] } ] }"#,
    ];
    for text in common {
        assert!(agree(text.as_bytes()).unwrap().is_some(), "{text}");
    }
}

/// FP32 is the nearest to the nearest double, also where that lies next to the middle between two FP32.
#[test]
fn fp32_is_rounded_twice_as_triton_does() {
    for below in [1.0_f32, 0.1, 0.000_123, 1.23e-13, 7.654_321, 123.456, 1_000.0] {
        let middle = f64::from(below) + (f64::from(below.next_up()) - f64::from(below)) / 2.0;
        for ulps in -40..40_i64 {
            let double = f64::from_bits(middle.to_bits().wrapping_add_signed(ulps));
            for places in 1..=24 {
                let text = format!("-{double:.places$}");
                let expected = (text.parse::<f64>().unwrap() as f32).to_le_bytes();
                let expected = [expected, expected, 1.0_f32.to_le_bytes()].concat();
                for request in requests("FP32", &text) {
                    let read = agree(request.as_bytes()).unwrap().unwrap();
                    assert_eq!(*read.inputs[0].data, *expected, "{text}");
                }
            }
        }
    }
}
