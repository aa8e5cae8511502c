//! Executions: what goes into a model comes out as the model says, whatever the datatype, size or shape.

use crate::common::{floats, golden, input, load, run, vector};
use alipes_engine::Engine;
use alipes_engine::batch::Member;
use alipes_protocol::codec::elements;
use alipes_protocol::{Code, Datatype};

const FP32: Datatype = Datatype::Fp32;

#[test]
fn every_datatype_of_fixed_size_comes_back() {
    let types = Datatype::ALL.into_iter().filter(|datatype| !matches!(datatype, Datatype::Bytes | Datatype::Bf16));
    let types: Vec<Datatype> = types.collect();
    let names: Vec<[String; 2]> =
        types.iter().map(|datatype| [format!("IN_{datatype}"), format!("OUT_{datatype}")]).collect();
    let side = |side: usize| -> Vec<crate::common::Port> {
        names.iter().zip(&types).map(|(names, &datatype)| (names[side].as_str(), datatype, &[2][..])).collect()
    };
    let mut session = load(&golden("types"), 0, &side(0), &side(1)).unwrap();
    let sent: Vec<Vec<u8>> = types.iter().map(|datatype| [1, 0].repeat(datatype.size().unwrap())).collect();
    let inputs: Vec<Member> = types
        .iter()
        .zip(&sent)
        .enumerate()
        .map(|(index, (&datatype, data))| input(index, datatype, &[2], data))
        .collect();
    let all: Vec<usize> = (0..types.len()).collect();
    let outputs = run(&mut session, &inputs, &all).unwrap();
    for (output, (datatype, data)) in outputs.iter().zip(types.iter().zip(&sent)) {
        assert_eq!((output.datatype, &output.shape[..]), (*datatype, &[2][..]));
        assert_eq!(output.data, data, "{datatype}");
    }
}

#[test]
fn bf16_comes_back() {
    let port = |name| (name, Datatype::Bf16, &[2][..]);
    let mut session = load(&vector("bf16"), 4, &[port("X")], &[port("Y")]).unwrap();
    let data = [0x80, 0x3f, 0x00, 0x40, 0xc0, 0x7f, 0x01, 0x00];
    let outputs = run(&mut session, &[input(0, Datatype::Bf16, &[2, 2], &data)], &[0]).unwrap();
    assert_eq!(outputs[0].data, &data[..]);
}

#[test]
fn strings_may_hold_any_byte() {
    let port = |name| (name, Datatype::Bytes, &[-1][..]);
    let mut session = load(&golden("strings"), 4, &[port("TEXT")], &[port("SAME")]).unwrap();
    let mut data = Vec::new();
    for element in [&b"plain"[..], b"", b"\xff\xfe not utf-8", b"zero\0inside", "wörd".as_bytes(), b"\0"] {
        elements::push(&mut data, element);
    }
    let outputs = run(&mut session, &[input(0, Datatype::Bytes, &[2, 3], &data)], &[0]).unwrap();
    assert_eq!(outputs[0].shape[..], [2, 3]);
    assert_eq!(outputs[0].data, data);
    let none = run(&mut session, &[input(0, Datatype::Bytes, &[1, 0], &[])], &[0]).unwrap();
    assert_eq!((&none[0].shape[..], none[0].data.len()), (&[1, 0][..], 0));
}

#[test]
fn positions_are_those_of_the_configuration() {
    let port = |name| (name, FP32, &[2, 3][..]);
    let inputs = [port("INPUT1"), port("INPUT0")];
    let mut session = load(&golden("addsub_f32"), 0, &inputs, &[port("OUTPUT1"), port("OUTPUT0")]).unwrap();
    let (subtrahend, minuend) = (floats(&[1.0; 6]), floats(&[5.0; 6]));
    let sent = [input(0, FP32, &[2, 3], &subtrahend), input(1, FP32, &[2, 3], &minuend)];
    let outputs = run(&mut session, &sent, &[0, 1]).unwrap();
    assert_eq!((outputs[0].index, &outputs[0].data[..]), (0, &floats(&[4.0; 6])[..]));
    assert_eq!((outputs[1].index, &outputs[1].data[..]), (1, &floats(&[6.0; 6])[..]));
    let one = run(&mut session, &sent, &[1]).unwrap();
    assert_eq!(one, [outputs[1].clone()]);
}

#[test]
fn large_outputs_outlive_their_session() {
    let outputs = [("WIDE", FP32, &[32768][..]), ("SMALL", FP32, &[1][..])];
    let mut session = load(&vector("wide"), 8, &[("X", FP32, &[1])], &outputs).unwrap();
    let data = floats(&[2.0, 3.0]);
    let outputs = run(&mut session, &[input(0, FP32, &[2, 1], &data)], &[0, 1]).unwrap();
    let again = run(&mut session, &[input(0, FP32, &[1, 1], &floats(&[9.0]))], &[0]).unwrap();
    drop(session);
    assert_eq!(outputs[0].shape[..], [2, 32768]);
    assert_eq!(outputs[0].data, floats(&[[2.0; 32768], [3.0; 32768]].concat()));
    assert_eq!(outputs[1].data, floats(&[-2.0, -3.0]));
    assert_eq!(again[0].data, floats(&[9.0; 32768]));
}

#[test]
fn an_output_that_is_an_input_is_copied() {
    let port = |name| (name, FP32, &[-1][..]);
    let mut session = load(&vector("same"), 0, &[port("X")], &[port("X"), port("Y")]).unwrap();
    let mut data = floats(&[1.0; 65536]);
    let outputs = run(&mut session, &[input(0, FP32, &[65536], &data)], &[0, 1]).unwrap();
    let expected = data.clone();
    data.fill(0xee);
    assert_eq!(outputs[0].data, expected);
    assert_eq!(outputs[1].data, floats(&[-1.0; 65536]));
}

#[test]
fn a_tensor_without_dimensions_is_one_element_on_the_wire() {
    let mut session = load(&vector("scalar"), 0, &[("X", FP32, &[1])], &[("Y", FP32, &[1])]).unwrap();
    let outputs = run(&mut session, &[input(0, FP32, &[1], &floats(&[2.5]))], &[0]).unwrap();
    assert_eq!((&outputs[0].shape[..], &outputs[0].data[..]), (&[1][..], &floats(&[-2.5])[..]));
}

#[test]
fn no_rows_are_an_execution_like_any_other() {
    let ports = ([("x", FP32, &[8][..])], [("y", FP32, &[4][..])]);
    let mut session = load(&golden("mlp"), 16, &ports.0, &ports.1).unwrap();
    let outputs = run(&mut session, &[input(0, FP32, &[0, 8], &[])], &[0]).unwrap();
    assert_eq!((&outputs[0].shape[..], outputs[0].data.len()), (&[0, 4][..], 0));
}

#[test]
fn a_failed_run_has_the_librarys_text_and_hurts_no_later_one() {
    let mut session = load(&vector("table"), 8, &[("X", Datatype::Int64, &[])], &[("Y", FP32, &[])]).unwrap();
    let ask = |session: &mut _, row: i64| run(session, &[input(0, Datatype::Int64, &[1], &row.to_le_bytes())], &[0]);
    let error = ask(&mut session, 7).unwrap_err();
    assert_eq!(error.code, Code::Internal);
    assert!(error.message.starts_with("onnx runtime error 2: "), "{error}");
    assert!(error.message.contains("idx=7 must be within the inclusive range [-3,2]"), "{error}");
    assert_eq!(ask(&mut session, 2).unwrap()[0].data, floats(&[2.5]));
}

#[test]
fn bytes_that_do_not_fit_their_shape_never_reach_the_library() {
    let mut session = load(&golden("mlp"), 16, &[("x", FP32, &[8])], &[("y", FP32, &[4])]).unwrap();
    let data = floats(&[0.0; 17]);
    let aligned = data.as_ptr().align_offset(4);
    let mut refuse = |shape: &[i64], data: &[u8]| {
        let mut outputs = Vec::new();
        let error = session.run(&[input(0, FP32, shape, data)], &[0], &mut outputs).unwrap_err();
        assert!(error.message.contains("are no FP32 tensor of shape"), "{error}");
        assert!(outputs.is_empty());
    };
    refuse(&[1, 8], &data[aligned..][..28]);
    refuse(&[1, 8], &data[aligned..][..36]);
    refuse(&[-1, 8], &data[aligned..][..32]);
    refuse(&[i64::MAX, 8], &data[aligned..][..32]);
    refuse(&[1, 8], &data[aligned + 1..][..32]);
}

#[test]
fn unknown_positions_are_errors() {
    let mut session = load(&golden("mlp"), 16, &[("x", FP32, &[8])], &[("y", FP32, &[4])]).unwrap();
    let data = floats(&[0.0; 8]);
    assert_eq!(run(&mut session, &[input(1, FP32, &[1, 8], &data)], &[0]).unwrap_err().message, "there is no input 1");
    assert_eq!(run(&mut session, &[input(0, FP32, &[1, 8], &data)], &[3]).unwrap_err().message, "there is no output 3");
}
