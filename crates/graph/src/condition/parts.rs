//! The first part of a path, and what follows it.

use super::value::{is_modifier, trim, unescape};

/// What follows a part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rest<'p> {
    /// Nothing.
    End,
    /// A path within what the part finds.
    Path(&'p [u8]),
    /// A path of what all parts before it find together.
    Pipe(&'p [u8]),
}

/// The part of a path that names a member of an object.
#[derive(Debug, PartialEq)]
pub struct ObjectPart<'p> {
    pub key: Vec<u8>,
    /// The key has `*` or `?`.
    pub wild: bool,
    pub rest: Rest<'p>,
}

impl<'p> ObjectPart<'p> {
    pub fn of(path: &'p [u8]) -> ObjectPart<'p> {
        let (mut key, mut wild) = (Vec::new(), false);
        let mut at = 0;
        while let Some(&byte) = path.get(at) {
            match byte {
                b'|' => return ObjectPart { key, wild, rest: Rest::Pipe(&path[at + 1..]) },
                b'.' => return ObjectPart { key, wild, rest: after_dot(&path[at + 1..]) },
                b'\\' => {
                    at += 1;
                    key.extend(path.get(at));
                }
                _ => {
                    wild |= matches!(byte, b'*' | b'?');
                    key.push(byte);
                }
            }
            at += 1;
        }
        ObjectPart { key, wild, rest: Rest::End }
    }
}

/// The part of a path that names elements of an array.
#[derive(Debug, PartialEq)]
pub struct ArrayPart<'p> {
    pub select: Select<'p>,
    pub rest: Rest<'p>,
}

/// Which elements.
#[derive(Debug, PartialEq)]
pub enum Select<'p> {
    /// The one of this number.
    Index(usize),
    /// How many there are.
    Count,
    /// What each has at a path.
    Each(&'p [u8]),
    /// The first, or all, of which a query is true.
    Query { query: Query<'p>, all: bool },
    /// None.
    Nothing,
}

/// A comparison: `#(path op value)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Query<'p> {
    pub path: &'p [u8],
    /// Empty where the path has only to exist.
    pub op: &'p [u8],
    pub value: Vec<u8>,
}

impl<'p> ArrayPart<'p> {
    pub fn of(path: &'p [u8]) -> ArrayPart<'p> {
        if path.first() == Some(&b'#') {
            return ArrayPart::of_hash(path);
        }
        let end = path.iter().position(|byte| matches!(byte, b'|' | b'.'));
        let (part, rest) = match end {
            None => (path, Rest::End),
            Some(at) if path[at] == b'|' => (&path[..at], Rest::Pipe(&path[at + 1..])),
            // A `#` behind the first place makes no number, and the rest is a path in any case.
            Some(at) if path[..at].contains(&b'#') => (&path[..at], Rest::Path(&path[at + 1..])),
            Some(at) => (&path[..at], after_dot(&path[at + 1..])),
        };
        ArrayPart { select: number(part).map_or(Select::Nothing, Select::Index), rest }
    }

    fn of_hash(path: &'p [u8]) -> ArrayPart<'p> {
        match path.get(1) {
            Some(b'.') => ArrayPart { select: Select::Each(&path[2..]), rest: Rest::Path(&path[2..]) },
            Some(b'[' | b'(') => match Query::of(path) {
                // gjson looks at no more of it.
                None => ArrayPart { select: Select::Nothing, rest: Rest::End },
                Some((query, end)) => {
                    let all = path.get(end) == Some(&b'#');
                    let (_, rest) = split(&path[end..]);
                    ArrayPart { select: Select::Query { query, all }, rest }
                }
            },
            _ => {
                let (more, rest) = split(&path[1..]);
                ArrayPart { select: if more.is_empty() { Select::Count } else { Select::Nothing }, rest }
            }
        }
    }
}

/// What stands before the next dot or pipe, and what follows.
fn split(path: &[u8]) -> (&[u8], Rest<'_>) {
    match path.iter().position(|byte| matches!(byte, b'|' | b'.')) {
        None => (path, Rest::End),
        Some(at) if path[at] == b'|' => (&path[..at], Rest::Pipe(&path[at + 1..])),
        Some(at) => (&path[..at], Rest::Path(&path[at + 1..])),
    }
}

impl<'p> Query<'p> {
    /// The query at the beginning of a path, and where it ends; none where it does not.
    pub fn of(path: &'p [u8]) -> Option<(Query<'p>, usize)> {
        let (mut depth, mut value_at, mut escaped) = (1, 0, false);
        let mut at = 2;
        loop {
            let byte = *path.get(at)?;
            match byte {
                b'!' | b'=' | b'<' | b'>' | b'%' if depth == 1 && value_at == 0 => value_at = at,
                b'\\' => at += 1,
                b'[' | b'(' => depth += 1,
                b']' | b')' => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                b'"' => {
                    at += 1;
                    while let Some(&inner) = path.get(at) {
                        match inner {
                            b'\\' => {
                                escaped = true;
                                at += 1;
                            }
                            b'"' => break,
                            _ => {}
                        }
                        at += 1;
                    }
                }
                _ => {}
            }
            at += 1;
        }
        if value_at == 0 {
            return Some((Query { path: trim(&path[2..at]), op: b"", value: Vec::new() }, at + 1));
        }
        let (op, value) = operator(trim(&path[value_at..at]));
        let quoted = value.len() >= 2 && value[0] == b'"' && value[value.len() - 1] == b'"';
        let value = match &value[usize::from(quoted)..value.len() - usize::from(quoted)] {
            inner if quoted && escaped => unescape(inner).into_owned(),
            inner => inner.to_vec(),
        };
        Some((Query { path: trim(&path[2..value_at]), op, value }, at + 1))
    }
}

/// The comparison at the beginning of a text, and the value behind it.
fn operator(text: &[u8]) -> (&[u8], &[u8]) {
    let length = match text {
        [b'!', b'=' | b'%', ..] | [b'<' | b'>', b'=', ..] => 2,
        [b'=', b'=', ..] => return (&text[1..2], trim(&text[2..])),
        [b'<' | b'>' | b'=' | b'%', ..] | [_] => 1,
        _ => 0,
    };
    (&text[..length], trim(&text[length..]))
}

/// Within a path a dot in front of a modifier or of a list of paths is a pipe.
fn after_dot(path: &[u8]) -> Rest<'_> {
    let piped = match path.first() {
        Some(b'@') => {
            let end = path.iter().position(|byte| matches!(byte, b'.' | b'|' | b':')).unwrap_or(path.len());
            is_modifier(&path[1..end])
        }
        Some(b'[' | b'{') => true,
        _ => false,
    };
    if piped { Rest::Pipe(path) } else { Rest::Path(path) }
}

/// The value of digits alone.
fn number(digits: &[u8]) -> Option<usize> {
    let all = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok().filter(|_| all)?;
    text.parse().ok()
}

/// A path up to its first pipe, and the path behind that; none where it has none outside of queries.
pub fn split_at_pipe(path: &[u8]) -> Option<(&[u8], &[u8])> {
    if path.first() == Some(&b'{') {
        let end = crate::json::value_end(path, 0);
        return (path.get(end) == Some(&b'|')).then(|| (&path[..end], &path[end + 1..]));
    }
    let mut at = 0;
    while let Some(&byte) = path.get(at) {
        match byte {
            b'\\' => at += 1,
            b'.' if path.get(at + 1) == Some(&b'#') && matches!(path.get(at + 2), Some(b'[' | b'(')) => {
                at = Query::of(&path[at + 1..]).map_or(path.len(), |(_, end)| at + end);
            }
            b'|' => return Some((&path[..at], &path[at + 1..])),
            _ => {}
        }
        at += 1;
    }
    None
}
