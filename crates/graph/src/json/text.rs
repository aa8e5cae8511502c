//! JSON as Go's `encoding/json` writes it: keys in order, `<`, `>` and `&` escaped, numbers as ECMAScript has them.

use crate::limits::GRAPH_MAX_JSON_DEPTH;

use super::scan::fault;
use super::tree::{Json, parse};

/// A JSON object as Go writes it again once it has read it into a map.
///
/// # Errors
///
/// What Go cannot read into a map, in its words.
pub fn object_text(json: &[u8]) -> Result<Vec<u8>, String> {
    if let Some(text) = fault(json, GRAPH_MAX_JSON_DEPTH) {
        return Err(text);
    }
    let found = match json.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{' | b'n') | None => {
            let mut text = Vec::with_capacity(json.len());
            write_value(&parse(json)?, &mut text);
            return Ok(text);
        }
        Some(b't' | b'f') => "bool",
        Some(b'"') => "string",
        Some(b'[') => "array",
        Some(_) => "number",
    };
    // Go looks at nothing in what has another type.
    Err(format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"))
}

/// A text as a JSON string.
pub fn quoted(text: &str) -> String {
    let mut json = Vec::with_capacity(text.len() + 2);
    write_string(text, &mut json);
    String::from_utf8_lossy(&json).into_owned()
}

/// Appends a value.
pub fn write_value(value: &Json<'_>, text: &mut Vec<u8>) {
    match value {
        Json::Null => text.extend_from_slice(b"null"),
        Json::Bool(true) => text.extend_from_slice(b"true"),
        Json::Bool(false) => text.extend_from_slice(b"false"),
        Json::Number(number) => text.extend_from_slice(number_text(*number).as_bytes()),
        Json::String(string) => write_string(string, text),
        Json::Array(values) => {
            text.push(b'[');
            for (number, value) in values.iter().enumerate() {
                if number > 0 {
                    text.push(b',');
                }
                write_value(value, text);
            }
            text.push(b']');
        }
        Json::Object(members) => {
            text.push(b'{');
            for (number, (key, value)) in members.iter().enumerate() {
                if number > 0 {
                    text.push(b',');
                }
                write_string(key, text);
                text.push(b':');
                write_value(value, text);
            }
            text.push(b'}');
        }
    }
}

/// Appends a text as a JSON string.
pub fn write_string(string: &str, text: &mut Vec<u8>) {
    text.push(b'"');
    for character in string.chars() {
        match character {
            '"' => text.extend_from_slice(b"\\\""),
            '\\' => text.extend_from_slice(b"\\\\"),
            '\u{8}' => text.extend_from_slice(b"\\b"),
            '\u{c}' => text.extend_from_slice(b"\\f"),
            '\n' => text.extend_from_slice(b"\\n"),
            '\r' => text.extend_from_slice(b"\\r"),
            '\t' => text.extend_from_slice(b"\\t"),
            '\0'..' ' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text.extend_from_slice(format!("\\u{:04x}", u32::from(character)).as_bytes());
            }
            _ => text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    text.push(b'"');
}

/// The shortest digits that mean the number: plain from 1e-6 to 1e21, beyond that with an exponent.
fn number_text(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return format!("{number}");
    }
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from Go 1.26.
    #[test]
    fn an_object_is_written_as_go_writes_it() {
        for (json, text) in [
            ("{}", "{}"),
            ("null", "null"),
            (r#"{ "b" : 1 , "a" : [ true , null ] }"#, r#"{"a":[true,null],"b":1}"#),
            (
                r#"{"a":1.0,"b":1e3,"c":-0,"d":0.000001,"e":1e-7,"f":1e21,"g":123456789012345680000}"#,
                r#"{"a":1,"b":1000,"c":-0,"d":0.000001,"e":1e-7,"f":1e+21,"g":123456789012345680000}"#,
            ),
            (
                r#"{"a":12345678901234567890,"b":0.1,"c":1.5e300,"d":2.5e-9}"#,
                r#"{"a":12345678901234567000,"b":0.1,"c":1.5e+300,"d":2.5e-9}"#,
            ),
            (r#"{"a":"<b>&\u0001\u2028\/é\b\f"}"#, r#"{"a":"\u003cb\u003e\u0026\u0001\u2028/é\b\f"}"#),
            (r#"{"a":{"y":1,"x":2},"a":{"z":3}}"#, r#"{"a":{"z":3}}"#),
            (r#"{"é":1,"z":2,"Z":3}"#, r#"{"Z":3,"z":2,"é":1}"#),
        ] {
            assert_eq!(object_text(json.as_bytes()).map(|text| String::from_utf8(text).unwrap()).unwrap(), text);
        }
    }

    #[test]
    fn what_is_no_object_is_refused_in_the_words_of_go() {
        for (json, found) in [("[]", "array"), ("\"a\"", "string"), ("1e400", "number"), ("true", "bool")] {
            let text = format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}");
            assert_eq!(object_text(json.as_bytes()).unwrap_err(), text);
        }
        assert_eq!(object_text(b"").unwrap_err(), "unexpected end of JSON input");
    }
}
