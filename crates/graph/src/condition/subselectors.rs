//! Several paths at once: `[path,path]` and `{name:path,path}`.

use super::value::Get;
use crate::json::{is_valid, write_string};

/// The values at several paths as one array or object, and what follows them; none where the brackets do not close.
pub fn select<'p>(json: &[u8], path: &'p [u8], depth: usize, get: Get) -> Option<(Vec<u8>, &'p [u8])> {
    let (selectors, rest) = parse(path)?;
    if !matches!(rest.first(), None | Some(b'|' | b'.')) {
        return None;
    }
    let is_object = path[0] == b'{';
    let mut text = vec![path[0]];
    for (name, path) in selectors {
        let Some(value) = get(json, path, depth + 1) else { continue };
        if text.len() > 1 {
            text.push(b',');
        }
        if is_object {
            write_name(name, path, &mut text);
            text.push(b':');
        }
        text.extend_from_slice(&value);
    }
    text.push(if is_object { b'}' } else { b']' });
    Some((text, rest))
}

fn write_name(name: &[u8], path: &[u8], text: &mut Vec<u8>) {
    if name.first() == Some(&b'"') && is_valid(name) {
        text.extend_from_slice(name);
        return;
    }
    let name = if name.is_empty() { last_name(path) } else { name };
    write_string(&String::from_utf8_lossy(name), text);
}

/// The last component of a path; `_` where that is no plain name.
fn last_name(path: &[u8]) -> &[u8] {
    let ends = |at: &usize| matches!(path[*at], b'|' | b'.') && (*at == 0 || path[at - 1] != b'\\');
    let last = (0..path.len()).rev().find(ends).map_or(path, |at| &path[at + 1..]);
    let is_special = |byte: &u8| *byte < b' ' || b"[]{}()#|!".contains(byte);
    if last.iter().any(is_special) { b"_" } else { last }
}

type Selectors<'p> = Vec<(&'p [u8], &'p [u8])>;

/// The names and paths within brackets, and what follows them.
fn parse(path: &[u8]) -> Option<(Selectors<'_>, &[u8])> {
    let mut selectors = Vec::new();
    let (mut depth, mut colon, mut start, mut in_modifier) = (1, None, 1, false);
    let mut at = 1;
    let selector = |colon: Option<usize>, start: usize, end: usize| match colon {
        Some(colon) => (&path[start..colon], &path[colon + 1..end]),
        None => (&path[..0], &path[start..end]),
    };
    while let Some(&byte) = path.get(at) {
        match byte {
            b'\\' => at += 1,
            b'@' if matches!(path[at - 1], b'.' | b'|') => in_modifier = true,
            b':' if !in_modifier && colon.is_none() && depth == 1 => colon = Some(at),
            b',' if depth == 1 => {
                selectors.push(selector(colon, start, at));
                (colon, start, in_modifier) = (None, at + 1, false);
            }
            b'"' => {
                at += 1;
                while let Some(&inner) = path.get(at) {
                    match inner {
                        b'\\' => at += 1,
                        b'"' => break,
                        _ => {}
                    }
                    at += 1;
                }
            }
            b'[' | b'(' | b'{' => depth += 1,
            b']' | b')' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    selectors.push(selector(colon, start, at));
                    return Some((selectors, &path[at + 1..]));
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}
