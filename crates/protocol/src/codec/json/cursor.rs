//! A place in a document that is walked once; every step gives up with `None` at what is wrong or merely unusual.

use super::number::{self, Number};
use super::parse::{peek, skip_space, skip_value};
use super::text;
use super::value::Value;
use crate::Shape;
use crate::limits::MAX_DIMENSIONS;

/// A place in the document.
pub(super) struct Cursor<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
}

/// A list or an object that is being walked over.
pub(super) struct Walk {
    close: u8,
    first: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn open(&mut self, bracket: u8) -> Option<Walk> {
        if peek(self.text, self.at) != bracket {
            return None;
        }
        self.at += 1;
        Some(Walk { close: if bracket == b'{' { b'}' } else { b']' }, first: true })
    }

    /// Goes to the next element; `Some(false)` behind the last.
    pub(super) fn next_element(&mut self, walk: &mut Walk) -> Option<bool> {
        self.at = skip_space(self.text, self.at);
        let first = std::mem::replace(&mut walk.first, false);
        match peek(self.text, self.at) {
            byte if byte == walk.close => {
                self.at += 1;
                return Some(false);
            }
            b',' if !first => self.at = skip_space(self.text, self.at + 1),
            _ if first => {}
            _ => return None,
        }
        // A comma in front of the closing bracket is an error.
        (peek(self.text, self.at) != walk.close).then_some(true)
    }

    /// Goes to the value of the next member; `Some(None)` behind the last.
    pub(super) fn next_name(&mut self, walk: &mut Walk) -> Option<Option<&'a [u8]>> {
        if !self.next_element(walk)? {
            return Some(None);
        }
        let (name, value) = super::parse::name(self.text, self.at).ok()?;
        self.at = value;
        if name.escaped { None } else { Some(Some(name.raw)) }
    }

    /// A string that stands in the document as it is meant.
    pub(super) fn string(&mut self) -> Option<&'a str> {
        if peek(self.text, self.at) != b'"' {
            return None;
        }
        let (quoted, end) = text::lex(self.text, self.at).ok()?;
        self.at = end;
        if quoted.escaped { None } else { str::from_utf8(quoted.raw).ok() }
    }

    /// Any value, which lies below `outer` open brackets.
    pub(super) fn value(&mut self, outer: usize) -> Option<Value<'a>> {
        let start = self.at;
        self.at = skip_value(self.text, start, outer).ok()?;
        Some(Value::checked(self.text, start, self.at))
    }

    pub(super) fn shape(&mut self) -> Option<Shape> {
        let mut shape = Shape::new();
        let mut sizes = self.open(b'[')?;
        while self.next_element(&mut sizes)? {
            if shape.len() == MAX_DIMENSIONS {
                return None;
            }
            let (Number::Unsigned(size), end) = number::lex(self.text, self.at).ok()? else { return None };
            self.at = end;
            shape.push(i64::try_from(size).ok()?);
        }
        Some(shape)
    }
}
