//! A value that a path finds.

use std::borrow::Cow;

use crate::json::decode_string;

/// A JSON value as it stands in a body, or as a modifier has made it.
pub type Value<'a> = Cow<'a, [u8]>;

/// What finds the value at a path: JSON, the path, and how deep paths are nested in others.
pub type Get = for<'a> fn(&'a [u8], &[u8], usize) -> Option<Value<'a>>;

/// The text between the quotes of a JSON string.
pub fn unescape(inner: &[u8]) -> Cow<'_, [u8]> {
    if !inner.contains(&b'\\') {
        return Cow::Borrowed(inner);
    }
    let quoted = [b"\"", inner, b"\""].concat();
    Cow::Owned(decode_string(&quoted).as_bytes().to_vec())
}

/// The names of modifiers.
const MODIFIERS: [&[u8]; 13] = [
    b"pretty", b"ugly", b"reverse", b"this", b"flatten", b"join", b"valid", b"keys", b"values", b"tostr", b"fromstr",
    b"group", b"dig",
];

/// Whether there is a modifier of this name.
pub fn is_modifier(name: &[u8]) -> bool {
    MODIFIERS.contains(&name)
}

/// A text without the space around it.
pub fn trim(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| *byte > b' ').unwrap_or(text.len());
    let end = text.iter().rposition(|byte| *byte > b' ').map_or(start, |last| last + 1);
    &text[start..end]
}
