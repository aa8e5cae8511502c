//! A JSON value as it stands in a document that was checked.
//!
//! Nothing is built: a [`Value`] is a slice of the document, and its accessors read that slice. A document of any size
//! therefore costs no memory beyond its text, and finding a member costs a pass over the object.
//!
//! Errors are Triton's, text for text, and always [`Code::Internal`](crate::Code::Internal): a caller that knows what
//! it was reading says so in front of them.

use std::borrow::Cow;

use super::error::SyntaxError;
use super::number::{self, Number};
use super::parse;
use super::text::{self, Quoted};
use crate::InferError;

/// A value within a checked document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value<'a> {
    /// Exactly the value, without space around it.
    text: &'a [u8],
}

impl<'a> Value<'a> {
    /// The only value of a document.
    ///
    /// `NaN`, `Inf` and `Infinity` are numbers; strings may hold any bytes.
    ///
    /// # Errors
    ///
    /// `Internal` with RapidJSON's text and offset where the document is no JSON; `TooLarge` where it is nested deeper
    /// than [`JSON_MAX_DEPTH`](crate::limits::JSON_MAX_DEPTH) within the three levels of a request.
    pub fn parse(document: &'a [u8]) -> Result<Value<'a>, InferError> {
        Ok(Value::parse_located(document)?)
    }

    /// The value that lies in `text[start..end]`, which [`parse::skip_value`] has checked.
    pub(super) fn checked(text: &'a [u8], start: usize, end: usize) -> Value<'a> {
        Value { text: &text[start..end] }
    }

    /// The only value of a document, as [`Value::parse`] reads it, for callers that say more of an error than its text.
    ///
    /// # Errors
    ///
    /// The document is no JSON.
    pub(super) fn parse_located(document: &'a [u8]) -> Result<Value<'a>, SyntaxError> {
        Ok(Value { text: parse::document(document)? })
    }

    /// Its text, escapes and quotation marks included.
    pub fn as_it_stands(self) -> &'a [u8] {
        self.text
    }

    /// Length of its text in bytes.
    pub(super) fn len(self) -> usize {
        self.text.len()
    }

    fn starts_with(self, byte: u8) -> bool {
        parse::peek(self.text, 0) == byte
    }

    /// Whether this is `null`.
    pub fn is_null(self) -> bool {
        self.starts_with(b'n')
    }

    /// Whether this is a list.
    pub fn is_array(self) -> bool {
        self.starts_with(b'[')
    }

    /// Whether this is an object.
    pub fn is_object(self) -> bool {
        self.starts_with(b'{')
    }

    /// Whether this is a string.
    pub fn is_string(self) -> bool {
        self.starts_with(b'"')
    }

    /// The first member with this name; `None` where there is none, or where this is no object.
    pub fn find(self, name: &str) -> Option<Value<'a>> {
        let [found] = self.pick([name]);
        found
    }

    /// The first member with each of these names, found in one pass.
    pub fn pick<const N: usize>(self, names: [&str; N]) -> [Option<Value<'a>>; N] {
        let mut found = [None; N];
        let mut members = self.members_or_none();
        while let Some((name, value)) = members.next_as_it_stands() {
            if let Some(index) = names.iter().position(|wanted| name.is(wanted.as_bytes())) {
                found[index] = found[index].or(Some(value));
            }
        }
        found
    }

    /// The first member with this name.
    ///
    /// # Errors
    ///
    /// There is none, or this is no object.
    pub fn member(self, name: &str) -> Result<Value<'a>, InferError> {
        existing(self.find(name), name)
    }

    /// Every member, in the document's order, with names that are given twice.
    ///
    /// # Errors
    ///
    /// This is no object.
    pub fn members(self) -> Result<Members<'a>, InferError> {
        if self.is_object() { Ok(self.members_or_none()) } else { Err(fail("attempt to get members for non-object")) }
    }

    fn members_or_none(self) -> Members<'a> {
        Members { text: if self.is_object() { self.text } else { b"" }, at: 1 }
    }

    /// The elements of a list.
    ///
    /// # Errors
    ///
    /// This is no list.
    pub fn elements(self) -> Result<Elements<'a>, InferError> {
        if self.is_array() {
            Ok(Elements { text: self.text, at: 1 })
        } else {
            Err(fail("attempt to access JSON non-array as array"))
        }
    }

    /// The bytes of a string, its escapes undone; they need not be UTF-8.
    ///
    /// # Errors
    ///
    /// This is no string.
    pub fn as_bytes(self) -> Result<Cow<'a, [u8]>, InferError> {
        if !self.is_string() {
            return Err(fail("attempt to access JSON non-string as string"));
        }
        text::lex(self.text, 0).map(|(quoted, _)| quoted.bytes()).map_err(InferError::from)
    }

    /// A string as text; what is no UTF-8 in it is replaced.
    ///
    /// # Errors
    ///
    /// This is no string.
    pub fn as_text(self) -> Result<Cow<'a, str>, InferError> {
        Ok(match self.as_bytes()? {
            Cow::Borrowed(bytes) => str::from_utf8(bytes).map_or_else(|_| Cow::Owned(replaced(bytes)), Cow::Borrowed),
            Cow::Owned(bytes) => Cow::Owned(lossy(bytes)),
        })
    }

    /// A truth value.
    ///
    /// # Errors
    ///
    /// This is neither `true` nor `false`.
    pub fn as_bool(self) -> Result<bool, InferError> {
        match parse::peek(self.text, 0) {
            b't' => Ok(true),
            b'f' => Ok(false),
            _ => Err(fail("attempt to access JSON non-boolean as boolean")),
        }
    }

    /// An integer of 64 bits.
    ///
    /// # Errors
    ///
    /// This is no integer, or lies beyond `i64`.
    pub fn as_i64(self) -> Result<i64, InferError> {
        match self.number() {
            Some(Number::Negative(value)) => Some(value),
            Some(Number::Unsigned(value)) => i64::try_from(value).ok(),
            _ => None,
        }
        .ok_or_else(|| fail("attempt to access JSON non-signed-integer as signed-integer"))
    }

    /// A non-negative integer of 64 bits.
    ///
    /// # Errors
    ///
    /// This is no integer, below zero, or beyond `u64`.
    pub fn as_u64(self) -> Result<u64, InferError> {
        match self.number() {
            Some(Number::Unsigned(value)) => Ok(value),
            _ => Err(fail("attempt to access JSON non-unsigned-integer as unsigned-integer")),
        }
    }

    /// Any number, as the nearest double.
    ///
    /// # Errors
    ///
    /// This is no number.
    pub fn as_f64(self) -> Result<f64, InferError> {
        match self.number() {
            Some(Number::Unsigned(value)) => Ok(value as f64),
            Some(Number::Negative(value)) => Ok(value as f64),
            Some(Number::Double(value)) => Ok(value),
            None => Err(fail("attempt to access JSON non-number as double")),
        }
    }

    fn number(self) -> Option<Number> {
        number::lex(self.text, 0).ok().map(|(number, _)| number)
    }
}

/// A member that must be there.
pub(super) fn existing<'a>(member: Option<Value<'a>>, name: &str) -> Result<Value<'a>, InferError> {
    member.ok_or_else(|| fail(format!("attempt to access non-existing object member '{name}'")))
}

/// The bytes as text; what is no UTF-8 in them is replaced.
pub fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| replaced(error.as_bytes()))
}

/// As [`String::from_utf8_lossy`], but takes what the text needs and not, while it grows, up to three times that.
fn replaced(bytes: &[u8]) -> String {
    const REPLACEMENT: &str = "\u{fffd}";
    let parts =
        || bytes.utf8_chunks().flat_map(|it| [it.valid(), if it.invalid().is_empty() { "" } else { REPLACEMENT }]);
    let mut text = String::with_capacity(parts().map(str::len).sum());
    text.extend(parts());
    text
}

fn fail(text: impl Into<String>) -> InferError {
    InferError::internal(text)
}

/// The members of an object: name and value.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Members<'a> {
    /// The next member, its name with the escapes that stand in it: undoing them takes memory.
    pub fn next_as_it_stands(&mut self) -> Option<(Quoted<'a>, Value<'a>)> {
        let (name, start) = parse::name(self.text, next_item(self.text, self.at)?).ok()?;
        let end = parse::skip_value(self.text, start, 0).ok()?;
        self.at = end;
        Some((name, Value::checked(self.text, start, end)))
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, [u8]>, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.next_as_it_stands().map(|(name, value)| (name.bytes(), value))
    }
}

/// The elements of a list.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        let start = next_item(self.text, self.at)?;
        let end = parse::skip_value(self.text, start, 0).ok()?;
        self.at = end;
        Some(Value::checked(self.text, start, end))
    }
}

/// Where the next element or member begins, behind the comma in front of it; `None` at the closing bracket.
fn next_item(text: &[u8], at: usize) -> Option<usize> {
    let at = parse::skip_space(text, at);
    match parse::peek(text, at) {
        b']' | b'}' | 0 => None,
        b',' => Some(parse::skip_space(text, at + 1)),
        _ => Some(at),
    }
}

/// The values of a list and of the lists within it, in order; nesting is forgotten.
#[derive(Clone, Debug)]
pub struct Leaves<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Leaves<'a> {
    /// # Errors
    ///
    /// `list` is no list.
    pub fn of(list: Value<'a>) -> Result<Leaves<'a>, InferError> {
        // One pass over the brackets, however deep: walking lists within lists would read the inner ones again and
        // again.
        list.elements().map(|elements| Leaves { text: elements.text, at: 0 })
    }

    /// The values of a list, or a value that is none.
    pub fn of_any(value: Value<'a>) -> Leaves<'a> {
        Leaves { text: value.text, at: 0 }
    }

    /// No more values can there be, because each takes a byte and a comma or bracket.
    pub fn most(&self) -> usize {
        self.text.len().div_ceil(2)
    }
}

impl<'a> Iterator for Leaves<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        while let b'[' | b']' | b',' | b' ' | b'\n' | b'\r' | b'\t' = parse::peek(self.text, self.at) {
            self.at += 1;
        }
        let end = parse::skip_value(self.text, self.at, 0).ok()?;
        let leaf = Value::checked(self.text, self.at, end);
        self.at = end;
        Some(leaf)
    }
}
