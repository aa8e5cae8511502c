//! A JSON value as Go decodes it into an `interface{}`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::scan::{elements, fault, is_space, members};
use crate::limits::GRAPH_MAX_JSON_DEPTH;

/// A value.
#[derive(Debug, PartialEq)]
pub enum Json<'a> {
    /// `null`
    Null,
    /// `true` and `false`
    Bool(bool),
    /// A number: Go keeps it as this.
    Number(f64),
    /// A text.
    String(Cow<'a, str>),
    /// Values in order.
    Array(Vec<Json<'a>>),
    /// Values by key, in the order in which Go writes them; of a key that stands there twice, the last.
    Object(BTreeMap<Cow<'a, str>, Json<'a>>),
}

/// Reads a value.
///
/// # Errors
///
/// What is no JSON, is nested deeper than `GRAPH_MAX_JSON_DEPTH`, or has a number that is too large, in Go's words.
pub fn parse(json: &[u8]) -> Result<Json<'_>, String> {
    match fault(json, GRAPH_MAX_JSON_DEPTH) {
        Some(text) => Err(text),
        None => value(trim(json)),
    }
}

/// A value without the space around it.
fn trim(json: &[u8]) -> &[u8] {
    let start = json.iter().position(|byte| !is_space(*byte)).unwrap_or(json.len());
    let end = json.iter().rposition(|byte| !is_space(*byte)).map_or(start, |last| last + 1);
    &json[start..end]
}

/// Reads a value that is known to be JSON.
fn value(json: &[u8]) -> Result<Json<'_>, String> {
    Ok(match json.first() {
        Some(b'{') => {
            let object = members(json).map(|(key, member)| Ok((decode_string(key), value(member)?)));
            Json::Object(object.collect::<Result<_, String>>()?)
        }
        Some(b'[') => Json::Array(elements(json).map(value).collect::<Result<_, String>>()?),
        Some(b'"') => Json::String(decode_string(json)),
        Some(b't') => Json::Bool(true),
        Some(b'f') => Json::Bool(false),
        Some(b'n') | None => Json::Null,
        Some(_) => Json::Number(number(json)?),
    })
}

fn number(json: &[u8]) -> Result<f64, String> {
    let text = String::from_utf8_lossy(json);
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(format!("json: cannot unmarshal number {text} into Go value of type float64")),
    }
}

/// The text of a JSON string; what is no UTF-8, or half a surrogate, becomes U+FFFD.
pub fn decode_string(json: &[u8]) -> Cow<'_, str> {
    let inner = json.get(1..json.len().saturating_sub(1)).unwrap_or_default();
    if !inner.contains(&b'\\') {
        return lossy(inner);
    }
    let mut text = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'\\' {
            text.push(byte);
            continue;
        }
        let Some((&escape, behind)) = rest.split_first() else { break };
        rest = behind;
        match escape {
            b'b' => text.push(8),
            b'f' => text.push(12),
            b'n' => text.push(b'\n'),
            b'r' => text.push(b'\r'),
            b't' => text.push(b'\t'),
            b'u' => {
                let (decoded, behind) = unicode(rest);
                rest = behind;
                text.extend_from_slice(decoded.encode_utf8(&mut [0; 4]).as_bytes());
            }
            other => text.push(other),
        }
    }
    Cow::Owned(lossy(&text).into_owned())
}

/// A text in which each byte that is no UTF-8 is U+FFFD.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Cow::Owned(text)
}

/// The character of the four digits at the beginning, or of a pair of surrogates, and what follows.
fn unicode(digits: &[u8]) -> (char, &[u8]) {
    let first = unit(digits);
    let behind = digits.get(4..).unwrap_or_default();
    if (0xd800..0xdc00).contains(&first)
        && let Some(second) = behind.strip_prefix(b"\\u")
        && (0xdc00..0xe000).contains(&unit(second))
    {
        let code = 0x10000 + ((first - 0xd800) << 10) + (unit(second) - 0xdc00);
        return (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), &second[4..]);
    }
    (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), behind)
}

fn unit(digits: &[u8]) -> u32 {
    let digits = digits.get(..4).and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0xfffd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_decoded_as_go_decodes_them() {
        for (json, text) in [
            (r#""a""#, "a"),
            (r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"),
            (r#""\u00fc\ud83d\ude00""#, "ü😀"),
            (r#""\ud83dx""#, "\u{fffd}x"),
            (r#""\ud83d\u0041""#, "\u{fffd}A"),
            (r#""\ude00""#, "\u{fffd}"),
        ] {
            assert_eq!(decode_string(json.as_bytes()), text, "{json}");
        }
        assert_eq!(decode_string(b"\"\xe2\x82a\""), "\u{fffd}\u{fffd}a");
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        let Json::Object(object) = parse(br#" {"a": 1, "b": 2, "a": [3]} "#).unwrap() else { panic!("an object") };
        assert_eq!(object["a"], Json::Array(vec![Json::Number(3.0)]));
    }

    #[test]
    fn what_go_refuses_is_refused_in_its_words() {
        let number = parse(b"[1e400]").unwrap_err();
        assert_eq!(number, "json: cannot unmarshal number 1e400 into Go value of type float64");
        let deep = "[".repeat(GRAPH_MAX_JSON_DEPTH + 1);
        assert_eq!(parse(deep.as_bytes()).unwrap_err(), "invalid character '[' exceeded max depth");
        let deep = format!("{}{}", "[".repeat(GRAPH_MAX_JSON_DEPTH), "]".repeat(GRAPH_MAX_JSON_DEPTH));
        assert!(parse(deep.as_bytes()).is_ok());
    }
}
