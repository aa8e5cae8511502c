//! Whether a value is what a query compares it to.

use std::borrow::Cow;

use super::parts::Query;
use super::value::unescape;
use super::wildcard;

/// What a comparison sees of a value.
enum Compared<'a> {
    Text(Cow<'a, [u8]>),
    Number(f64),
    Bool(bool),
    Null,
    /// An object or an array, which is compared to nothing.
    Other,
}

/// Whether a query is true of the value at its path.
pub fn holds(query: &Query<'_>, value: Option<&[u8]>) -> bool {
    if let Some(kind) = query.value.strip_prefix(b"~") {
        let is = match kind {
            b"*" => Some(value.is_some()),
            b"null" => Some(value.is_none_or(|value| value == b"null")),
            b"true" => Some(value.is_some_and(is_trueish)),
            b"false" => Some(value.is_none_or(is_falseish)),
            _ => None,
        };
        return is.is_some_and(|is| query.op.is_empty() || compare_bool(is, query.op, b"true"));
    }
    let Some(value) = value else { return false };
    query.op.is_empty() || compare(value, query.op, &query.value)
}

fn compare(value: &[u8], op: &[u8], to: &[u8]) -> bool {
    match compared(value) {
        Compared::Text(text) => match op {
            b"=" => *text == *to,
            b"!=" => *text != *to,
            b"<" => *text < *to,
            b"<=" => *text <= *to,
            b">" => *text > *to,
            b">=" => *text >= *to,
            b"%" => wildcard::matches(&text, to),
            b"!%" => !wildcard::matches(&text, to),
            _ => false,
        },
        #[expect(clippy::float_cmp, reason = "gjson compares numbers so")]
        Compared::Number(number) => {
            let to = number_text(to);
            match op {
                b"=" => number == to,
                b"!=" => number != to,
                b"<" => number < to,
                b"<=" => number <= to,
                b">" => number > to,
                b">=" => number >= to,
                _ => false,
            }
        }
        Compared::Bool(is) => compare_bool(is, op, to),
        Compared::Null | Compared::Other => false,
    }
}

fn compare_bool(is: bool, op: &[u8], to: &[u8]) -> bool {
    let (same, other): (&[u8], &[u8]) = if is { (b"true", b"false") } else { (b"false", b"true") };
    match op {
        b"=" => to == same,
        b"!=" => to != same,
        b">" if is => to == other,
        b"<" if !is => to == other,
        b">=" => is,
        b"<=" => !is,
        _ => false,
    }
}

fn compared(value: &[u8]) -> Compared<'_> {
    match value {
        [b'"', inner @ .., b'"'] => Compared::Text(unescape(inner)),
        [b't', ..] => Compared::Bool(true),
        [b'f', ..] => Compared::Bool(false),
        [b'{' | b'[', ..] => Compared::Other,
        [b'+' | b'-' | b'0'..=b'9', ..] => Compared::Number(number_text(value)),
        _ => Compared::Null,
    }
}

fn is_trueish(value: &[u8]) -> bool {
    match compared(value) {
        Compared::Bool(is) => is,
        Compared::Text(text) => bool_text(&text) == Some(true),
        Compared::Number(number) => number != 0.0,
        Compared::Null | Compared::Other => false,
    }
}

fn is_falseish(value: &[u8]) -> bool {
    match compared(value) {
        Compared::Bool(is) => !is,
        Compared::Text(text) => bool_text(&text) == Some(false),
        Compared::Number(number) => number == 0.0,
        Compared::Null => true,
        Compared::Other => false,
    }
}

/// Source: Go's `strconv.ParseBool`, of a text in lower case.
fn bool_text(text: &[u8]) -> Option<bool> {
    match text.to_ascii_lowercase().as_slice() {
        b"1" | b"t" | b"true" => Some(true),
        b"0" | b"f" | b"false" => Some(false),
        _ => None,
    }
}

/// A number as Go's `strconv.ParseFloat` gives it where its error is not looked at: 0 for what is none.
fn number_text(text: &[u8]) -> f64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}
