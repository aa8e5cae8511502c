//! What stands behind Triton's text of a refusal: where the request is wrong, what was expected and what was found.
//!
//! Triton's recorded release answers without it. No request that is served comes here: the part that was refused is
//! read once more, and only a few bytes of it are quoted.

use std::fmt::Write;

use super::error::{Fault, SyntaxError};
use super::value::{Leaves, Value};
use crate::datatype::fits_fp32;
use crate::limits::MAX_DIMENSIONS;
use crate::shape::{self, element_count};
use crate::{Code, Datatype, InferError, Shape, TritonRelease};

/// Most bytes of a request that are quoted.
const QUOTED_BYTES: usize = 32;

/// Says behind an error where it is, unless the answers of the recorded release are asked for.
pub(super) trait Explained {
    /// The same outcome; an error's text ends with `; ` and what `detail` says.
    fn explained(self, release: TritonRelease, detail: impl FnOnce() -> String) -> Self;
}

impl<T> Explained for Result<T, InferError> {
    fn explained(self, release: TritonRelease, detail: impl FnOnce() -> String) -> Self {
        self.map_err(|mut error| {
            // Limits and memory have texts of their own, and what they refuse is not read again.
            if release.is_later() && matches!(error.code, Code::Internal | Code::InvalidArgument) {
                let _ = write!(error.message, "; {}", detail());
            }
            error
        })
    }
}

/// The only value of a document.
///
/// # Errors
///
/// RapidJSON's text, and where the document stops being JSON.
pub fn parse(text: &[u8], release: TritonRelease) -> Result<Value<'_>, InferError> {
    Value::parse_located(text).map_err(|error| {
        let refused: Result<(), _> = Err(InferError::from(error));
        refused.explained(release, || syntax(text, error)).unwrap_err()
    })
}

/// Where a document stops being JSON.
fn syntax(text: &[u8], error: SyntaxError) -> String {
    let (before, rest) = text.split_at(error.offset.min(text.len()));
    let line = before.split(|&byte| byte == b'\n').next_back().unwrap_or_default();
    let lines = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    // Continuation bytes of UTF-8 are no characters of their own.
    let column = line.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() + 1;
    format!("line {lines}, column {column}: expected {}, found {}", expected(error.fault), found(rest))
}

fn expected(fault: Fault) -> &'static str {
    match fault {
        Fault::Empty => "a JSON object",
        Fault::NotSingular => "the end (tensors behind the JSON need the header Inference-Header-Content-Length)",
        Fault::InvalidValue => "a value (text stands in double quotes)",
        Fault::NoName => "a name in double quotes",
        Fault::NoColon => "':'",
        Fault::NoCommaOrBrace => "',' or '}'",
        Fault::NoCommaOrBracket => "',' or ']'",
        Fault::BadHex => "four hexadecimal digits behind \\u",
        Fault::BadSurrogate => "both halves of a surrogate pair",
        Fault::BadEscape => "an escape of JSON, such as \\n",
        Fault::NoQuote => "a closing '\"'",
        Fault::NumberTooBig => "a number of 64 bits",
        Fault::NoFraction | Fault::NoExponent => "a digit",
        Fault::TooDeep => "fewer brackets",
    }
}

/// A body without inputs.
pub(super) fn no_inputs(document: Value<'_>) -> String {
    if document.is_object() {
        "expected 'inputs', a list of objects with name, shape, datatype and data; plain values, as in {\"X\": 1}, are \
         for .../generate"
            .to_owned()
    } else {
        format!("expected a JSON object with 'inputs', found {}", found(document.as_it_stands()))
    }
}

/// Which input it is, and what is wrong with it as far as the input itself shows.
pub(super) fn input(input: Value<'_>, index: usize) -> String {
    let called = entry("input", "inputs", input, index);
    let fault = if input.is_object() { input_fault(input) } else { Some(unlike("an object", input)) };
    fault.map_or_else(|| called.clone(), |fault| format!("{called}: {fault}"))
}

/// What is wrong with an input of `generate`.
pub(super) fn generated(name: &str, datatype: Datatype, declared: &[i64], value: Value<'_>) -> String {
    let name = quoted(name.as_bytes());
    let leaves = Leaves::of_any(value);
    match values_fault(leaves.clone(), datatype, None) {
        Some(fault) => format!("input '{name}': {fault}"),
        None => format!(
            "input '{name}' takes {datatype} of shape {}, found {} values",
            shape::text(declared),
            leaves.count()
        ),
    }
}

/// A key of `generate` that names no input, with a value that no parameter has.
pub fn not_an_input(key: &str, model: &str) -> String {
    format!("model '{model}' has no input '{}'", quoted(key.as_bytes()))
}

/// Which output it is.
pub(super) fn output(output: Value<'_>, index: usize) -> String {
    entry("output", "outputs", output, index)
}

fn entry(kind: &str, list: &str, entry: Value<'_>, index: usize) -> String {
    match entry.find("name").filter(|name| name.is_string()) {
        Some(name) => format!("{kind} '{}' ({list}[{index}])", quoted(inner(name))),
        None => format!("{list}[{index}]"),
    }
}

/// What is wrong with an input, looked for in Triton's order.
fn input_fault(input: Value<'_>) -> Option<String> {
    let [name, datatype, shape, data] = input.pick(["name", "datatype", "shape", "data"]);
    for (member, value) in [("name", name), ("datatype", datatype)] {
        match value {
            None => return Some(format!("it has no '{member}'")),
            Some(value) if !value.is_string() => {
                return Some(format!("'{member}' is {}, expected a text", show(value)));
            }
            Some(_) => {}
        }
    }
    let Some(shape) = shape else { return Some("it has no 'shape'".to_owned()) };
    let Some(sizes) = sizes(shape) else {
        return Some(format!("'shape' is {}, expected a list of whole numbers from 0", show(shape)));
    };
    let datatype = datatype?;
    let Some(known) = known_datatype(datatype) else {
        return Some(format!("its datatype is {}, expected one of {}", show(datatype), datatypes()));
    };
    data_fault(data?, known, &sizes)
}

/// What is wrong with the values of an input.
fn data_fault(data: Value<'_>, datatype: Datatype, shape: &[i64]) -> Option<String> {
    let count = element_count(shape)?;
    let Ok(leaves) = Leaves::of(data) else { return Some(format!("'data' is {}, expected a list", show(data))) };
    values_fault(leaves, datatype, Some((count, shape)))
}

/// What is wrong with values: the first one of another type, or how many they are where their number is known.
pub fn values_fault(leaves: Leaves<'_>, datatype: Datatype, expected: Option<(usize, &[i64])>) -> Option<String> {
    let most = expected.map_or(usize::MAX, |(count, _)| count);
    for (index, leaf) in leaves.clone().take(most).enumerate() {
        if !is_readable(leaf, datatype) {
            let expected = range(leaf, datatype).unwrap_or_else(|| kind(datatype).to_owned());
            return Some(format!("value {index} of its data, counted from 0, is {}, expected {expected}", show(leaf)));
        }
    }
    let (count, shape) = expected?;
    let found = leaves.count();
    let plural = if count == 1 { "" } else { "s" };
    (found != count).then(|| format!("shape {} needs {count} element{plural}, data has {found}", shape::text(shape)))
}

/// Whether a value can be one of a tensor with this datatype, as `data` reads them.
fn is_readable(leaf: Value<'_>, datatype: Datatype) -> bool {
    match datatype {
        _ if range(leaf, datatype).is_some() => false,
        Datatype::Bool => leaf.as_bool().is_ok(),
        Datatype::Uint8 | Datatype::Uint16 | Datatype::Uint32 | Datatype::Uint64 => leaf.as_u64().is_ok(),
        Datatype::Int8 | Datatype::Int16 | Datatype::Int32 | Datatype::Int64 => leaf.as_i64().is_ok(),
        Datatype::Fp32 | Datatype::Fp64 => leaf.as_f64().is_ok(),
        Datatype::Bytes => leaf.is_string(),
        // JSON does not carry these, whatever the value is.
        Datatype::Fp16 | Datatype::Bf16 => true,
    }
}

/// What a number of the right kind would have to be that lies beyond the range of a datatype.
fn range(leaf: Value<'_>, datatype: Datatype) -> Option<String> {
    if datatype == Datatype::Fp32 {
        let is_beyond = leaf.as_f64().is_ok_and(|value| !fits_fp32(value));
        return is_beyond.then(|| format!("a number from {:e} to {:e}", f32::MIN, f32::MAX));
    }
    let range = datatype.integers()?;
    let value = leaf.as_i64().map(i128::from).or_else(|_| leaf.as_u64().map(i128::from)).ok()?;
    (!range.contains(&value)).then(|| format!("a whole number from {} to {}", range.start(), range.end()))
}

fn kind(datatype: Datatype) -> &'static str {
    match datatype {
        Datatype::Bool => "true or false",
        Datatype::Uint8 | Datatype::Uint16 | Datatype::Uint32 | Datatype::Uint64 => "a whole number from 0",
        Datatype::Int8 | Datatype::Int16 | Datatype::Int32 | Datatype::Int64 => "a whole number",
        Datatype::Fp16 | Datatype::Bf16 | Datatype::Fp32 | Datatype::Fp64 => "a number",
        Datatype::Bytes => "a text",
    }
}

/// The sizes of a shape; `None` where it is none, or has more than a tensor may have.
fn sizes(shape: Value<'_>) -> Option<Shape> {
    let mut sizes = Shape::new();
    for size in shape.elements().ok()? {
        if sizes.len() == MAX_DIMENSIONS {
            return None;
        }
        sizes.push(i64::try_from(size.as_u64().ok()?).ok()?);
    }
    Some(sizes)
}

/// The datatype of a name that is no longer than names of datatypes are.
fn known_datatype(name: Value<'_>) -> Option<Datatype> {
    if name.len() > QUOTED_BYTES {
        return None;
    }
    Datatype::from_name(&name.as_text().ok()?)
}

fn datatypes() -> String {
    Datatype::ALL.map(Datatype::name).join(", ")
}

fn unlike(expected: &str, value: Value<'_>) -> String {
    format!("expected {expected}, found {}", show(value))
}

/// The beginning of a value as it stands.
pub fn show(value: Value<'_>) -> String {
    quoted(value.as_it_stands())
}

/// The text between the quotation marks of a string, as it stands.
fn inner(string: Value<'_>) -> &[u8] {
    let text = string.as_it_stands();
    text.get(1..text.len().saturating_sub(1)).unwrap_or_default()
}

/// What a document goes on with.
fn found(rest: &[u8]) -> String {
    if rest.is_empty() { "the end of the body".to_owned() } else { quoted(rest) }
}

/// The first bytes of a text on one line: characters that do not print are spelled out.
fn quoted(text: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&text[..text.len().min(QUOTED_BYTES)]);
    let shown = if text.len() > QUOTED_BYTES { shown.trim_end_matches('\u{fffd}') } else { &shown };
    let mut line = String::with_capacity(shown.len());
    for one in shown.chars() {
        if one.is_control() { line.extend(one.escape_default()) } else { line.push(one) }
    }
    if text.len() > QUOTED_BYTES {
        line.push_str("...");
    }
    line
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::{DecodeOptions, decode_request};
    use super::*;
    use crate::NoRegions;

    fn read(release: TritonRelease, body: &str) -> String {
        let options = DecodeOptions { release, ..DecodeOptions::from(1 << 20) };
        let body = Bytes::copy_from_slice(body.as_bytes());
        decode_request(&body, None, "m", options, &mut NoRegions).unwrap_err().message
    }

    /// What stands behind Triton's text, which is the beginning of the whole.
    fn detail(body: &str) -> String {
        let whole = read(TritonRelease::V2_73, body);
        whole.split_once("; ").unwrap_or_else(|| panic!("nothing is added: {whole}")).1.to_owned()
    }

    fn of_input(input: &str) -> String {
        detail(&format!(r#"{{"inputs":[{{"name":"A","shape":[1],"datatype":"FP32","data":[1]}},{input}]}}"#))
    }

    #[test]
    fn the_recorded_release_is_answered_without_a_detail() {
        for body in ["{", "[1]", r#"{"inputs":[{"name":"X","shape":[2],"datatype":"INT8","data":[1]}]}"#] {
            assert!(!read(TritonRelease::V2_51, body).contains(';'), "{body}");
        }
    }

    #[test]
    fn a_detail_stands_behind_the_words_of_triton() {
        let text = read(
            TritonRelease::V2_73,
            r#"{"inputs":[{"name":"scan","shape":[1,2,2],"datatype":"FP32","data":[[[1,2],[3]]]}]}"#,
        );
        assert_eq!(
            text,
            "Failed to parse 'data' field: shape does not match true shape; input 'scan' (inputs[0]): \
             shape [1,2,2] needs 4 elements, data has 3"
        );
    }

    #[test]
    fn broken_json_is_found_by_line_and_column() {
        assert_eq!(detail("{\"inputs\": [],\n  \"id\" 5}"), "line 2, column 8: expected ':', found 5}");
        assert_eq!(detail("{"), "line 1, column 2: expected a name in double quotes, found the end of the body");
        assert_eq!(detail("{'inputs': []}"), "line 1, column 2: expected a name in double quotes, found 'inputs': []}");
        assert_eq!(detail("hello"), "line 1, column 1: expected a value (text stands in double quotes), found hello");
        assert_eq!(detail("{\"é\": 1 2}"), "line 1, column 9: expected ',' or '}', found 2}");
    }

    #[test]
    fn a_body_without_inputs_says_where_plain_values_go() {
        assert!(detail(r#"{"X": 1}"#).ends_with("plain values, as in {\"X\": 1}, are for .../generate"));
        assert_eq!(detail("[1,2]"), "expected a JSON object with 'inputs', found [1,2]");
    }

    #[test]
    fn an_input_is_named_with_its_place_and_its_fault() {
        let rows = [
            (r#"{"name":"X","shape":[3],"datatype":"INT8","data":[1]}"#, "shape [3] needs 3 elements, data has 1"),
            (r#"{"name":"X","shape":[1],"datatype":"INT8","data":[1,2]}"#, "shape [1] needs 1 element, data has 2"),
            (
                r#"{"name":"X","shape":[2],"datatype":"INT8","data":[1,"x"]}"#,
                "value 1 of its data, counted from 0, is \"x\", expected a whole number",
            ),
            (
                r#"{"name":"X","shape":[2],"datatype":"INT8","data":[1,128]}"#,
                "value 1 of its data, counted from 0, is 128, expected a whole number from -128 to 127",
            ),
            (
                r#"{"name":"X","shape":[2],"datatype":"UINT16","data":[[1],[-1]]}"#,
                "value 1 of its data, counted from 0, is -1, expected a whole number from 0 to 65535",
            ),
            (
                r#"{"name":"X","shape":[1],"datatype":"FP32","data":[-1e39]}"#,
                "value 0 of its data, counted from 0, is -1e39, expected a number from -3.4028235e38 to 3.4028235e38",
            ),
            (
                r#"{"name":"X","shape":[2],"datatype":"BYTES","data":["a",5]}"#,
                "value 1 of its data, counted from 0, is 5, expected a text",
            ),
            (r#"{"name":"X","shape":[2],"datatype":"BOOL","data":"1"}"#, "'data' is \"1\", expected a list"),
            (
                r#"{"name":"X","shape":"2","datatype":"BOOL","data":[]}"#,
                "'shape' is \"2\", expected a list of whole numbers from 0",
            ),
            (
                r#"{"name":"X","shape":[-1],"datatype":"BOOL","data":[]}"#,
                "'shape' is [-1], expected a list of whole numbers from 0",
            ),
            (r#"{"name":"X","shape":[1],"data":[1]}"#, "it has no 'datatype'"),
        ];
        for (input, fault) in rows {
            assert_eq!(of_input(input), format!("input 'X' (inputs[1]): {fault}"), "{input}");
        }
        assert_eq!(of_input(r#"{"shape":[1],"datatype":"INT8","data":[1]}"#), "inputs[1]: it has no 'name'");
        assert_eq!(of_input("5"), "inputs[1]: expected an object, found 5");
        assert!(
            of_input(r#"{"name":"X","shape":[1],"datatype":"FLOAT","data":[1]}"#)
                .starts_with("input 'X' (inputs[1]): its datatype is \"FLOAT\", expected one of BOOL, UINT8,")
        );
    }

    #[test]
    fn an_output_is_named_with_its_place() {
        let text = r#"{"inputs":[],"outputs":[{"name":"Y","parameters":{"binary_data":1}}]}"#;
        assert_eq!(detail(text), "output 'Y' (outputs[0])");
        assert_eq!(detail(r#"{"inputs":[],"outputs":[{}]}"#), "outputs[0]");
    }

    #[test]
    fn quotations_are_short_and_on_one_line() {
        let text = detail(&format!(r#"{{"inputs":[{{"name":"{}","shape":1}}]}}"#, "é".repeat(1 << 10)));
        assert!(text.len() < 200, "{text}");
        assert!(detail("{\n\t\u{1}").ends_with("found \\u{1}"));
    }
}
