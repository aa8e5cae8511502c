//! Modifiers, `@name:argument`, which make another value of one, and constants, `!value`.

use std::borrow::Cow;

use super::value::{Get, Value, is_modifier, trim, unescape};
use crate::json::{decode_string, elements, is_valid, members, write_string};
use crate::limits::GRAPH_MAX_JSON_DEPTH;

/// What the modifier at the beginning of a path makes of JSON, and the rest of the path; none where there is no such
/// modifier.
pub fn apply<'a, 'p>(json: &'a [u8], path: &'p [u8], depth: usize, get: Get) -> Option<(Value<'a>, &'p [u8])> {
    let end = path.iter().position(|byte| matches!(byte, b':' | b'|' | b'.')).unwrap_or(path.len());
    let name = &path[1..end];
    if !is_modifier(name) {
        return None;
    }
    let (argument, rest) = match path.get(end) {
        Some(b':') => split_argument(&path[end + 1..]),
        _ => (&path[end..end], &path[end..]),
    };
    let json = trim(json);
    let made = match name {
        b"reverse" => reverse(json),
        b"flatten" => flatten(json, flag(argument, "deep"), 0),
        b"join" => join(json, flag(argument, "preserve")),
        b"keys" => keys(json),
        b"values" => values(json),
        b"valid" if !is_valid(json) => Some(Vec::new()),
        b"tostr" => Some(text_of(json)),
        b"fromstr" => Some(from_text(json)),
        b"group" => Some(group(json)),
        b"dig" => Some(dig(json, argument, depth, get)),
        _ => None,
    };
    Some((made.map_or(Cow::Borrowed(json), Cow::Owned), rest))
}

/// The constant at the beginning of a path, and the rest of it; none where there is none.
pub fn constant(path: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let text = &path[1..];
    if let Some(b'{' | b'[' | b'"' | b'+' | b'-' | b'0'..=b'9') = text.first() {
        let end = closing(text);
        return Some((text[..end].to_vec(), &text[end..]));
    }
    let end = text.iter().position(|byte| matches!(byte, b'|' | b'.')).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let known = matches!(name.to_ascii_lowercase().as_slice(), b"true" | b"false" | b"null" | b"nan" | b"inf");
    known.then(|| (name.to_vec(), rest))
}

/// The argument of a modifier, and what follows it.
fn split_argument(text: &[u8]) -> (&[u8], &[u8]) {
    if let Some(b'{' | b'[' | b'"') = text.first() {
        return text.split_at(closing(text));
    }
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'|' => break,
            b'{' | b'[' | b'"' | b'(' => at += closing(&text[at..]),
            _ => at += 1,
        }
    }
    text.split_at(at.min(text.len()))
}

/// The position behind the bracket, or the quote, that closes the first one.
fn closing(text: &[u8]) -> usize {
    let (mut depth, mut at, mut quoted) = (0_usize, 0, false);
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            b'{' | b'[' | b'(' if !quoted => depth += 1,
            b'}' | b']' | b')' if !quoted => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 && !quoted {
            return at.min(text.len());
        }
    }
    text.len()
}

/// Whether a member of an argument is true.
fn flag(argument: &[u8], name: &str) -> bool {
    let is_object = argument.first() == Some(&b'{');
    is_object && members(argument).any(|(key, value)| decode_string(key) == name && value == b"true")
}

fn is_array(json: &[u8]) -> bool {
    json.first() == Some(&b'[')
}

fn is_object(json: &[u8]) -> bool {
    json.first() == Some(&b'{')
}

/// Values as an array, or members, with their colons, as an object.
fn joined<'v>(open: u8, values: impl Iterator<Item = Cow<'v, [u8]>>) -> Vec<u8> {
    let mut text = vec![open];
    for value in values {
        if text.len() > 1 {
            text.push(b',');
        }
        text.extend_from_slice(&value);
    }
    text.push(if open == b'[' { b']' } else { b'}' });
    text
}

fn member(key: &[u8], value: &[u8]) -> Vec<u8> {
    [key, b":", value].concat()
}

fn reverse(json: &[u8]) -> Option<Vec<u8>> {
    if is_array(json) {
        let mut values: Vec<&[u8]> = elements(json).collect();
        values.reverse();
        return Some(joined(b'[', values.into_iter().map(Cow::Borrowed)));
    }
    if is_object(json) {
        let mut all: Vec<Vec<u8>> = members(json).map(|(key, value)| member(key, value)).collect();
        all.reverse();
        return Some(joined(b'{', all.into_iter().map(Cow::Owned)));
    }
    None
}

fn flatten(json: &[u8], deep: bool, depth: usize) -> Option<Vec<u8>> {
    if !is_array(json) || depth > GRAPH_MAX_JSON_DEPTH {
        return None;
    }
    let inner = |array: &[u8]| trim(&array[1..array.len() - 1]).to_vec();
    let values = elements(json).map(|value| match is_array(value) {
        true if deep => Cow::Owned(flatten(value, deep, depth + 1).map_or_else(|| inner(value), |flat| inner(&flat))),
        true => Cow::Owned(inner(value)),
        false => Cow::Borrowed(value),
    });
    Some(joined(b'[', values.filter(|value| !value.is_empty())))
}

fn join(json: &[u8], preserve: bool) -> Option<Vec<u8>> {
    if !is_array(json) {
        return None;
    }
    let objects = elements(json).filter(|value| is_object(value));
    if preserve {
        let inner = objects.map(|object| Cow::Borrowed(trim(&object[1..object.len() - 1])));
        return Some(joined(b'{', inner));
    }
    let mut all: Vec<(&[u8], Cow<'_, str>, &[u8])> = Vec::new();
    for (key, value) in objects.flat_map(members) {
        let name = decode_string(key);
        match all.iter_mut().find(|known| known.1 == name) {
            Some(known) => known.2 = value,
            None => all.push((key, name, value)),
        }
    }
    Some(joined(b'{', all.into_iter().map(|(key, _, value)| Cow::Owned(member(key, value)))))
}

fn keys(json: &[u8]) -> Option<Vec<u8>> {
    Some(match json.first() {
        None => b"[]".to_vec(),
        Some(b'{') => joined(b'[', members(json).map(|(key, _)| Cow::Borrowed(key))),
        Some(b'[') => joined(b'[', elements(json).map(|_| Cow::Borrowed(&b"null"[..]))),
        Some(_) => b"[null]".to_vec(),
    })
}

fn values(json: &[u8]) -> Option<Vec<u8>> {
    match json.first() {
        None => Some(b"[]".to_vec()),
        Some(b'[') => None,
        Some(b'{') => Some(joined(b'[', members(json).map(|(_, value)| Cow::Borrowed(value)))),
        Some(_) => Some(joined(b'[', std::iter::once(Cow::Borrowed(json)))),
    }
}

fn text_of(json: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    write_string(&String::from_utf8_lossy(json), &mut text);
    text
}

/// The text of a string, as JSON.
fn from_text(json: &[u8]) -> Vec<u8> {
    match json {
        _ if !is_valid(json) => Vec::new(),
        [b'"', inner @ .., b'"'] => unescape(inner).into_owned(),
        b"null" => Vec::new(),
        _ => json.to_vec(),
    }
}

fn group(json: &[u8]) -> Vec<u8> {
    if !is_object(json) {
        return Vec::new();
    }
    let mut groups: Vec<Vec<Vec<u8>>> = Vec::new();
    for (key, values) in members(json).filter(|(_, value)| is_array(value)) {
        for (number, value) in elements(values).enumerate() {
            if number == groups.len() {
                groups.push(Vec::new());
            }
            groups[number].push(member(key, value));
        }
    }
    joined(b'[', groups.into_iter().map(|all| Cow::Owned(joined(b'{', all.into_iter().map(Cow::Owned)))))
}

/// What JSON and everything in it has at a path.
fn dig(json: &[u8], path: &[u8], depth: usize, get: Get) -> Vec<u8> {
    let mut digger = Digger { path, depth, get, found: Vec::new() };
    digger.dig(json, 0);
    joined(b'[', digger.found.into_iter().map(Cow::Owned))
}

struct Digger<'p> {
    path: &'p [u8],
    depth: usize,
    get: Get,
    found: Vec<Vec<u8>>,
}

impl Digger<'_> {
    fn dig(&mut self, json: &[u8], level: usize) {
        if level > GRAPH_MAX_JSON_DEPTH {
            return;
        }
        self.found.extend((self.get)(json, self.path, self.depth + 1).map(Cow::into_owned));
        if is_array(json) {
            elements(json).for_each(|value| self.dig(value, level + 1));
        } else if is_object(json) {
            members(json).for_each(|(_, value)| self.dig(value, level + 1));
        }
    }
}
