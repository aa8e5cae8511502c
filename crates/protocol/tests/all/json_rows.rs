//! Documents of calls, read straight into the columns of a batch.

use alipes_protocol::codec::json::rows::{Argument, Column, MAX_ARGUMENTS, RowReader};
use alipes_protocol::{Datatype, Shape};
use proptest::prelude::*;

fn argument(name: &str, datatype: Datatype, shape: Option<&[i64]>) -> Argument {
    Argument { name: name.to_owned(), datatype, shape: shape.map(Shape::from_slice) }
}

fn read(datatype: Datatype, shape: Option<&[i64]>, text: &str) -> Option<(Vec<i64>, Vec<u8>)> {
    let reader = RowReader::new(vec![argument("x", datatype, shape)]).unwrap();
    let mut values = [Column { shape: Shape::from_slice(&[9]), bytes: vec![9] }];
    reader.read(format!("{{\"x\": {text}}}").as_bytes(), &mut values)?;
    let [Column { shape, bytes }] = values;
    Some((shape.to_vec(), bytes))
}

fn floats(text: &str) -> Option<(Vec<i64>, Vec<f32>)> {
    let (shape, bytes) = read(Datatype::Fp32, None, text)?;
    Some((shape, bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()))
}

#[test]
fn lists_within_lists_have_their_shape() {
    assert_eq!(floats("1.5"), Some((vec![], vec![1.5])));
    assert_eq!(floats("[1, -2.5,3e1]"), Some((vec![3], vec![1.0, -2.5, 30.0])));
    assert_eq!(floats("[[1,2],[3,4], [5,6]]"), Some((vec![3, 2], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])));
    assert_eq!(floats("[ [ [ 1 ] ] , [[2 ]]\n]"), Some((vec![2, 1, 1], vec![1.0, 2.0])));
    let long: Vec<String> = (0..500).map(|value| format!("{value}.25")).collect();
    let (shape, values) = floats(&format!("[[{0}],[{0}]]", long.join(","))).unwrap();
    assert_eq!((shape, values[499], values[999]), (vec![2, 500], 499.25, 499.25));
}

#[test]
fn nothing_irregular_is_read() {
    for text in [
        "[]",
        "[[]]",
        "[1,[2]]",
        "[[1],2]",
        "[[1,2],[3]]",
        "[[1],[2,3]]",
        "[1,]",
        "[1 2]",
        "[1",
        "[[1]",
        "[1]]",
        "[true]",
        "[null]",
        "[\"1\"]",
        "{}",
        "",
        "[01]",
        "[+1]",
        "[1.]",
        "[NaN]",
        "[Infinity]",
        "[1e400]",
        "[-]",
        "[[[1]],[2]]",
        "[9223372036854775808]",
        "[1e30]",
    ] {
        assert_eq!(floats(text), None, "{text}");
    }
    assert_eq!(floats(&format!("{}1{}", "[".repeat(17), "]".repeat(17))), None);
    assert!(floats(&format!("{}1{}", "[".repeat(16), "]".repeat(16))).is_some());
}

#[test]
fn a_declared_shape_has_to_fit() {
    let fits = |shape: &[i64], text: &str| read(Datatype::Int64, Some(shape), text).is_some();
    assert!(fits(&[2], "[1,2]") && fits(&[-1], "[1,2]") && fits(&[-1, 1], "[[1],[2]]") && fits(&[], "7"));
    assert!(!fits(&[3], "[1,2]") && !fits(&[], "[7]") && !fits(&[2], "[[1,2]]") && !fits(&[-1, 2], "[[1],[2]]"));
}

#[test]
fn integers_are_whole_and_in_range() {
    let reads = |datatype, text: &str| read(datatype, None, text).is_some();
    for (datatype, least, most) in [
        (Datatype::Int8, i64::from(i8::MIN), i64::from(i8::MAX)),
        (Datatype::Uint8, 0, i64::from(u8::MAX)),
        (Datatype::Int16, i64::from(i16::MIN), i64::from(i16::MAX)),
        (Datatype::Uint32, 0, i64::from(u32::MAX)),
    ] {
        assert!(reads(datatype, &format!("[{least},{most},{most}]")), "{datatype}");
        assert!(!reads(datatype, &format!("[1,{},1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", most + 1)), "{datatype}");
        assert!(!reads(datatype, &format!("[{}]", least - 1)), "{datatype}");
    }
    for text in ["[1.0]", "[1e2]", "[true]", "1.5", "[9223372036854775808]"] {
        assert!(!reads(Datatype::Int64, text), "{text}");
    }
    assert!(reads(Datatype::Int64, "[9223372036854775807,-9223372036854775808]"));
    assert_eq!(read(Datatype::Bool, None, "[true,false]"), Some((vec![2], vec![1, 0])));
    assert!(!reads(Datatype::Bool, "[1]") && !reads(Datatype::Bool, "[true,0]"));
}

#[test]
fn texts_stand_as_they_are() {
    let text = |text: &str| read(Datatype::Bytes, Some(&[]), text).map(|(_, bytes)| bytes[4..].to_vec());
    assert_eq!(text("\"caf\u{e9}\""), Some("caf\u{e9}".as_bytes().to_vec()));
    for unusual in ["\"a\\n\"", "\"a\nb\"", "\"a", "1", "null", "[\"a\"]"] {
        assert_eq!(text(unusual), None, "{unusual}");
    }
    let reader = RowReader::new(vec![argument("x", Datatype::Bytes, Some(&[]))]).unwrap();
    assert_eq!(reader.read(b"{\"x\":\"\xff\"}", &mut [Column::default()]), None);
}

#[test]
fn a_document_has_each_argument_once_and_no_other() {
    let arguments = vec![argument("a", Datatype::Fp64, None), argument("b", Datatype::Int64, None)];
    let reader = RowReader::new(arguments).unwrap();
    let reads = |text: &str| reader.read(text.as_bytes(), &mut [Column::default(), Column::default()]).is_some();
    assert!(reads(r#"{"a":1,"b":2}"#) && reads(" {\n\"b\" : [2] ,\t\"a\":1.5 } "));
    for text in [
        r#"{"a":1}"#,
        r#"{"a":1,"b":2,"c":3}"#,
        r#"{"a":1,"b":2,"a":1}"#,
        r#"{"a":1,"b":2}x"#,
        r#"{"a":1,"b":2,}"#,
        r#"{"\u0061":1,"b":2}"#,
        "{}",
        "",
        "[1,2]",
        r#"{"a":1 "b":2}"#,
        "\u{feff}{\"a\":1,\"b\":2}",
    ] {
        assert!(!reads(text), "{text}");
    }
}

proptest! {
    #[test]
    fn whatever_comes_what_is_read_has_the_size_of_its_shape(
        text in "(\\{ ?\"x\": ?)?[\\[\\]{},:\"0-9eE+. tfrusalén\\\\-]{0,40}(\\])?(\\})?",
        datatype in prop::sample::select(vec![Datatype::Fp32, Datatype::Fp64, Datatype::Int16, Datatype::Bool]),
    ) {
        let reader = RowReader::new(vec![argument("x", datatype, None)]).unwrap();
        let mut values = [Column::default()];
        if reader.read(text.as_bytes(), &mut values).is_some() {
            let [Column { shape, bytes }] = values;
            let count = alipes_protocol::shape::element_count(&shape).unwrap();
            prop_assert!(count > 0 && bytes.len() == count * datatype.size().unwrap());
        }
    }
}

#[test]
fn what_cannot_be_read_gets_no_reader() {
    for arguments in [
        vec![],
        vec![argument("x", Datatype::Fp16, None)],
        vec![argument("x", Datatype::Bytes, None)],
        vec![argument("x", Datatype::Fp32, None); MAX_ARGUMENTS + 1],
    ] {
        assert!(RowReader::new(arguments).is_none());
    }
}
