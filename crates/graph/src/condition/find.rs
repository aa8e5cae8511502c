//! What JSON has at a path.

use std::borrow::Cow;

use super::compare::holds;
use super::parts::{ArrayPart, ObjectPart, Query, Rest, Select, split_at_pipe};
use super::value::{Value, trim, unescape};
use super::{modifiers, subselectors, wildcard};
use crate::json::{elements, members};

/// Deepest nesting of paths in paths, each of which takes stack.
const MAX_DEPTH: usize = 64;

/// The value at a path; none where there is none.
pub fn get<'a>(json: &'a [u8], path: &[u8], depth: usize) -> Option<Value<'a>> {
    if depth > MAX_DEPTH {
        return None;
    }
    if path.len() > 1 {
        let made = match path[0] {
            b'@' => modifiers::apply(json, path, depth, get),
            b'!' => modifiers::constant(path).map(|(value, rest)| (Cow::Owned(value), rest)),
            b'[' | b'{' => subselectors::select(json, path, depth, get).map(|(value, rest)| (Cow::Owned(value), rest)),
            _ => None,
        };
        if let Some((value, rest)) = made {
            return match rest.first() {
                Some(b'|' | b'.') => get_in(value, &rest[1..], depth + 1),
                _ => first_value(value),
            };
        }
    }
    let mut search = Search { found: None, pipe: None, depth };
    match path.strip_prefix(b"..") {
        // Lines of JSON: one value here, the only element.
        Some(path) => search.array(std::iter::once(trim(json)), path),
        None => search.within(trim(json), path),
    };
    match search.pipe {
        Some(pipe) => match search.found {
            Some(value) => get_in(value, pipe, depth + 1),
            // What gjson makes of nothing: a constant, or a list without values.
            None => get(b"", pipe, depth + 1),
        },
        None => search.found,
    }
}

/// The value at a path of a value.
fn get_in<'a>(value: Value<'a>, path: &[u8], depth: usize) -> Option<Value<'a>> {
    match value {
        Cow::Borrowed(json) => get(json, path, depth),
        Cow::Owned(json) => get(&json, path, depth).map(|found| Cow::Owned(found.into_owned())),
    }
}

/// A value without the space around it; none where there is none.
fn first_value(value: Value<'_>) -> Option<Value<'_>> {
    let value = match value {
        Cow::Borrowed(json) => Cow::Borrowed(trim(json)),
        Cow::Owned(json) => Cow::Owned(trim(&json).to_vec()),
    };
    (!value.is_empty()).then_some(value)
}

struct Search<'a, 'p> {
    found: Option<Value<'a>>,
    pipe: Option<&'p [u8]>,
    depth: usize,
}

impl<'a, 'p> Search<'a, 'p> {
    /// Looks for a path in an object; true where the search is over.
    fn object(&mut self, object: &'a [u8], path: &'p [u8]) -> bool {
        let part = ObjectPart::of(path);
        if let Rest::Pipe(pipe) = part.rest {
            self.pipe = Some(pipe);
        }
        for (key, value) in members(object) {
            let key = unescape(key.get(1..key.len() - 1).unwrap_or_default());
            let matches = if part.wild { wildcard::matches(&key, &part.key) } else { *key == *part.key };
            if !matches {
                continue;
            }
            match part.rest {
                Rest::Path(path) if self.within(value, path) => return true,
                Rest::Path(_) => {}
                Rest::End | Rest::Pipe(_) => {
                    self.found = Some(Cow::Borrowed(value));
                    return true;
                }
            }
        }
        false
    }

    fn within(&mut self, value: &'a [u8], path: &'p [u8]) -> bool {
        match value.first() {
            Some(b'{') => self.object(value, path),
            Some(b'[') => self.array(elements(value), path),
            _ => false,
        }
    }

    /// Looks for a path in the elements of an array; true where the search is over.
    fn array(&mut self, mut values: impl Iterator<Item = &'a [u8]>, path: &'p [u8]) -> bool {
        let part = ArrayPart::of(path);
        if let Rest::Pipe(pipe) = part.rest {
            self.pipe = Some(pipe);
        }
        match part.select {
            Select::Nothing => false,
            Select::Index(index) => match (values.nth(index), part.rest) {
                (None, _) => false,
                (Some(value), Rest::Path(path)) => self.within(value, path),
                (Some(value), _) => {
                    self.found = Some(Cow::Borrowed(value));
                    true
                }
            },
            Select::Count => {
                self.found = Some(Cow::Owned(values.count().to_string().into_bytes()));
                true
            }
            Select::Each(path) => {
                let (path, depth) = (self.up_to_pipe(path), self.depth + 1);
                self.found = Some(Cow::Owned(list(values.filter_map(|value| get(value, path, depth)))));
                true
            }
            Select::Query { query, all } => {
                let depth = self.depth + 1;
                let matching = values.filter(|value| is_chosen(&query, value, depth));
                let chosen: Vec<&'a [u8]> = matching.take(if all { usize::MAX } else { 1 }).collect();
                self.choose(chosen, all, part.rest)
            }
        }
    }

    /// What a query has chosen, or what that has at the rest of the path.
    fn choose(&mut self, chosen: Vec<&'a [u8]>, all: bool, rest: Rest<'p>) -> bool {
        let (is_empty, depth) = (chosen.is_empty(), self.depth + 1);
        let path = match rest {
            Rest::Path(path) if !is_empty => Some(self.up_to_pipe(path)),
            _ => None,
        };
        let mut values = chosen.into_iter().filter_map(|value| match path {
            Some(path) => get(value, path, depth),
            None => Some(Cow::Borrowed(value)),
        });
        if all {
            // gjson goes on with what follows the array, and what was found first stays.
            if self.found.is_none() {
                self.found = Some(Cow::Owned(list(values)));
            }
            return false;
        }
        if !is_empty {
            self.found = values.next();
        }
        !is_empty
    }

    /// A path up to its first pipe, behind which everything found goes on.
    fn up_to_pipe(&mut self, path: &'p [u8]) -> &'p [u8] {
        match split_at_pipe(path) {
            Some((left, right)) => {
                self.pipe = Some(right);
                left
            }
            None => path,
        }
    }
}

/// Whether a query is true of an element, of which only objects and arrays have something at a path.
fn is_chosen(query: &Query<'_>, value: &[u8], depth: usize) -> bool {
    let compared = match value.first() {
        Some(b'{' | b'[') => get(value, query.path, depth),
        _ if query.path.is_empty() => Some(Cow::Borrowed(value)),
        _ => return false,
    };
    holds(query, compared.as_deref())
}

/// Values as a JSON array.
fn list<'a>(values: impl Iterator<Item = Value<'a>>) -> Vec<u8> {
    let mut text = vec![b'['];
    for value in values {
        if text.len() > 1 {
            text.push(b',');
        }
        text.extend_from_slice(&value);
    }
    text.push(b']');
    text
}
