//! What can be wrong with a JSON text, in the words that clients of Triton match on.

use crate::limits::{JSON_MAX_DEPTH, REQUEST_MAX_ENTRIES};
use crate::{Code, InferError};

/// A broken rule of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Empty,
    NotSingular,
    InvalidValue,
    NoName,
    NoColon,
    NoCommaOrBrace,
    NoCommaOrBracket,
    BadHex,
    BadSurrogate,
    BadEscape,
    NoQuote,
    NumberTooBig,
    NoFraction,
    NoExponent,
    TooDeep,
}

impl Fault {
    /// The words of RapidJSON, which Triton passes on.
    fn text(self) -> &'static str {
        match self {
            Fault::Empty => "The document is empty.",
            Fault::NotSingular => "The document root must not be followed by other values.",
            Fault::InvalidValue => "Invalid value.",
            Fault::NoName => "Missing a name for object member.",
            Fault::NoColon => "Missing a colon after a name of object member.",
            Fault::NoCommaOrBrace => "Missing a comma or '}' after an object member.",
            Fault::NoCommaOrBracket => "Missing a comma or ']' after an array element.",
            Fault::BadHex => "Incorrect hex digit after \\u escape in string.",
            Fault::BadSurrogate => "The surrogate pair in string is invalid.",
            Fault::BadEscape => "Invalid escape character in string.",
            Fault::NoQuote => "Missing a closing quotation mark in string.",
            Fault::NumberTooBig => "Number too big to be stored in double.",
            Fault::NoFraction => "Miss fraction part in number.",
            Fault::NoExponent => "Miss exponent in number.",
            Fault::TooDeep => "JSON nesting depth exceeds maximum allowed limit",
        }
    }
}

/// Where a text stops being JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    pub fault: Fault,
    /// Bytes from the beginning of the text.
    pub offset: usize,
}

impl SyntaxError {
    pub(super) fn new(fault: Fault, offset: usize) -> SyntaxError {
        SyntaxError { fault, offset }
    }
}

impl From<SyntaxError> for InferError {
    fn from(SyntaxError { fault, offset }: SyntaxError) -> InferError {
        match fault {
            Fault::TooDeep => InferError::new(Code::TooLarge, format!("{} ({JSON_MAX_DEPTH})", fault.text())),
            _ => InferError::internal(format!("failed to parse the request JSON buffer: {} at {offset}", fault.text())),
        }
    }
}

/// Refuses one more entry of a request than it may have of a kind: `inputs`, say.
///
/// # Errors
///
/// `TooLarge`.
pub(super) fn check_entries(before: usize, kind: &str) -> Result<(), InferError> {
    if before < REQUEST_MAX_ENTRIES {
        return Ok(());
    }
    Err(InferError::new(Code::TooLarge, format!("the request has more than {REQUEST_MAX_ENTRIES} {kind}")))
}

/// Says in front of an error what was being read.
pub(super) trait Within {
    /// The same outcome; an error's text begins with `what`.
    fn within(self, what: &str) -> Self;
}

impl<T> Within for Result<T, InferError> {
    fn within(self, what: &str) -> Self {
        self.map_err(|error| InferError { message: format!("{what}: {}", error.message), ..error })
    }
}
