//! What a JSON value says to those who ask, and the texts that refuse a wrong question.

use alipes_protocol::codec::json::value::Value;
use alipes_protocol::{Code, InferError};

fn value(text: &str) -> Value<'_> {
    Value::parse(text.as_bytes()).unwrap()
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, InferError>) -> String {
    let error = outcome.unwrap_err();
    assert_eq!(error.code, Code::Internal);
    error.message
}

#[test]
fn the_first_of_equal_names_counts() {
    let object = value(r#"{"a":1,"b":[],"a":2}"#);
    assert_eq!(object.find("a").unwrap().as_u64(), Ok(1));
    assert_eq!(object.pick(["b", "c", "a"]).map(|found| found.is_some()), [true, false, true]);
    let names: Vec<_> = object.members().unwrap().map(|(name, _)| name.into_owned()).collect();
    assert_eq!(names, [b"a", b"b", b"a"]);
}

#[test]
fn names_are_compared_without_their_escapes() {
    assert_eq!(value(r#"{"\u0061\/":true}"#).member("a/").unwrap().as_bool(), Ok(true));
}

#[test]
fn what_is_no_object_has_no_members() {
    assert_eq!(value("[1]").find("a"), None);
    assert_eq!(refused(value("[1]").member("a")), "attempt to access non-existing object member 'a'");
    assert_eq!(refused(value("[1]").members()), "attempt to get members for non-object");
}

#[test]
fn elements_keep_their_order_and_their_text() {
    let list = value(r#" [ 1 , [2,3] , {"a":"]"} , "," ] "#);
    let kinds: Vec<_> =
        list.elements().unwrap().map(|each| (each.is_array(), each.is_object(), each.is_string())).collect();
    assert_eq!(kinds, [(false, false, false), (true, false, false), (false, true, false), (false, false, true)]);
    assert_eq!(refused(value("{}").elements()), "attempt to access JSON non-array as array");
}

#[test]
fn numbers_are_read_as_what_they_are() {
    assert_eq!(value("-5").as_i64(), Ok(-5));
    assert_eq!(value("18446744073709551615").as_u64(), Ok(u64::MAX));
    assert_eq!(value("7").as_f64(), Ok(7.0));
    let text = "attempt to access JSON non-signed-integer as signed-integer";
    assert_eq!(refused(value("18446744073709551615").as_i64()), text);
    assert_eq!(refused(value("1.0").as_i64()), text);
    let text = "attempt to access JSON non-unsigned-integer as unsigned-integer";
    assert_eq!(refused(value("-1").as_u64()), text);
    assert_eq!(refused(value("\"1\"").as_u64()), text);
    assert_eq!(refused(value("null").as_f64()), "attempt to access JSON non-number as double");
}

#[test]
fn strings_are_bytes_and_perhaps_text() {
    let document = b"\"a\\n\xff\"";
    let string = Value::parse(document).unwrap();
    assert_eq!(string.as_bytes().unwrap().as_ref(), b"a\n\xff");
    assert_eq!(string.as_text().unwrap(), "a\n\u{fffd}");
    assert_eq!(refused(value("5").as_text()), "attempt to access JSON non-string as string");
    assert_eq!(refused(value("0").as_bool()), "attempt to access JSON non-boolean as boolean");
}

#[test]
fn a_broken_document_says_where() {
    assert_eq!(refused(Value::parse(b"")), "failed to parse the request JSON buffer: The document is empty. at 0");
    let error = Value::parse(&[b'['; 1000]).unwrap_err();
    assert_eq!(error.code, Code::TooLarge);
    assert_eq!(error.message, "JSON nesting depth exceeds maximum allowed limit (100)");
}
