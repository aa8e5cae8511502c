//! The grammar: every value is checked once, without building anything and without recursion.

use super::error::{Fault, SyntaxError};
use super::{number, text};
use crate::limits::JSON_MAX_DEPTH;

/// Levels around the `data` of an input: the document, `inputs` and the input itself.
pub(super) const ENVELOPE_DEPTH: usize = 3;

/// Deepest level of a document, so that `data` may use all of the limit.
const MAX_DEPTH: usize = JSON_MAX_DEPTH + ENVELOPE_DEPTH;

/// The byte at `at`; zero beyond the end, where RapidJSON sees a zero too.
#[inline]
pub fn peek(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(0)
}

/// The offset of the first byte from `at` on that is no white space.
#[inline]
pub fn skip_space(text: &[u8], mut at: usize) -> usize {
    while let b' ' | b'\n' | b'\r' | b'\t' = peek(text, at) {
        at += 1;
    }
    at
}

/// The text of the only value of a document, without the space around it.
///
/// As in RapidJSON a byte order mark is skipped, and a zero byte behind the value ends the document.
pub(super) fn document(text: &[u8]) -> Result<&[u8], SyntaxError> {
    let mark = [0xEF, 0xBB, 0xBF].iter().fold(0, |at, &byte| at + usize::from(peek(text, at) == byte));
    let start = skip_space(text, mark);
    if peek(text, start) == 0 {
        return Err(SyntaxError::new(Fault::Empty, start));
    }
    let end = skip_value(text, start, 0)?;
    let behind = skip_space(text, end);
    if peek(text, behind) != 0 {
        return Err(SyntaxError::new(Fault::NotSingular, behind));
    }
    Ok(&text[start..end])
}

/// The offset behind the value that begins at `start`, below `outer` open brackets.
pub fn skip_value(text: &[u8], start: usize, outer: usize) -> Result<usize, SyntaxError> {
    let mut nesting = Nesting { objects: 0, depth: 0, limit: MAX_DEPTH.saturating_sub(outer) };
    let mut at = start;
    loop {
        match peek(text, at) {
            open @ (b'[' | b'{') => {
                nesting.open(open == b'{', at)?;
                at = skip_space(text, at + 1);
                match (open, peek(text, at)) {
                    (b'[', b']') | (b'{', b'}') => {}
                    (b'{', _) => {
                        at = skip_name(text, at)?;
                        continue;
                    }
                    _ => continue,
                }
            }
            _ => at = skip_scalar(text, at)?,
        }
        match nesting.leave(text, at)? {
            (next, true) => at = next,
            (end, false) => return Ok(end),
        }
    }
}

/// Open brackets. A bit for each suffices, because the depth is bounded.
struct Nesting {
    /// The lowest bit is the innermost bracket; set for an object.
    objects: u128,
    depth: usize,
    limit: usize,
}

const _: () = assert!(MAX_DEPTH <= u128::BITS as usize, "a bit for each level");

impl Nesting {
    fn open(&mut self, object: bool, at: usize) -> Result<(), SyntaxError> {
        if self.depth == self.limit {
            return Err(SyntaxError::new(Fault::TooDeep, at));
        }
        self.objects = self.objects << 1 | u128::from(object);
        self.depth += 1;
        Ok(())
    }

    fn close(&mut self) {
        self.objects >>= 1;
        self.depth -= 1;
    }

    /// Goes on behind a value: closes brackets up to the next value (`true`) or up to the end (`false`).
    fn leave(&mut self, text: &[u8], mut at: usize) -> Result<(usize, bool), SyntaxError> {
        while self.depth > 0 {
            at = skip_space(text, at);
            let object = self.objects & 1 == 1;
            match (object, peek(text, at)) {
                (true, b'}') | (false, b']') => self.close(),
                (true, b',') => return Ok((skip_name(text, skip_space(text, at + 1))?, true)),
                (false, b',') => return Ok((skip_space(text, at + 1), true)),
                (true, _) => return Err(SyntaxError::new(Fault::NoCommaOrBrace, at)),
                (false, _) => return Err(SyntaxError::new(Fault::NoCommaOrBracket, at)),
            }
            at += 1;
        }
        Ok((at, false))
    }
}

/// The offset of the value behind the member name at `at`.
fn skip_name(text: &[u8], at: usize) -> Result<usize, SyntaxError> {
    name(text, at).map(|(_, value)| value)
}

/// The member name at `at`, and the offset of its value.
pub(super) fn name(text: &[u8], at: usize) -> Result<(text::Quoted<'_>, usize), SyntaxError> {
    if peek(text, at) != b'"' {
        return Err(SyntaxError::new(Fault::NoName, at));
    }
    let (name, end) = text::lex(text, at)?;
    let colon = skip_space(text, end);
    if peek(text, colon) != b':' {
        return Err(SyntaxError::new(Fault::NoColon, colon));
    }
    Ok((name, skip_space(text, colon + 1)))
}

fn skip_scalar(text: &[u8], at: usize) -> Result<usize, SyntaxError> {
    match peek(text, at) {
        b'"' => text::lex(text, at).map(|(_, end)| end),
        b'n' => number::expect(text, at, b"null"),
        b't' => number::expect(text, at, b"true"),
        b'f' => number::expect(text, at, b"false"),
        _ => number::scan(text, at).map(|token| token.end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> (Fault, usize) {
        let error = document(text.as_bytes()).unwrap_err();
        (error.fault, error.offset)
    }

    #[test]
    fn the_value_stands_alone_between_space() {
        assert_eq!(document(b" \n[1, {\"a\" : null}]\t\r"), Ok(&b"[1, {\"a\" : null}]"[..]));
        assert_eq!(document(b"\xEF\xBB\xBF[]"), Ok(&b"[]"[..]));
        assert_eq!(document(b"{}\0rest"), Ok(&b"{}"[..]));
    }

    #[test]
    fn faults_point_where_rapidjson_points() {
        assert_eq!(fault(""), (Fault::Empty, 0));
        assert_eq!(fault("  "), (Fault::Empty, 2));
        assert_eq!(fault("hello"), (Fault::InvalidValue, 0));
        assert_eq!(fault("nul"), (Fault::InvalidValue, 3));
        assert_eq!(fault("{"), (Fault::NoName, 1));
        assert_eq!(fault("{\"a\":1,}"), (Fault::NoName, 7));
        assert_eq!(fault("{\"a\" 1}"), (Fault::NoColon, 5));
        assert_eq!(fault("{\"a\":}"), (Fault::InvalidValue, 5));
        assert_eq!(fault("{\"a\":1]"), (Fault::NoCommaOrBrace, 6));
        assert_eq!(fault("[1 2]"), (Fault::NoCommaOrBracket, 3));
        assert_eq!(fault("[1,]"), (Fault::InvalidValue, 3));
        assert_eq!(fault("[1"), (Fault::NoCommaOrBracket, 2));
        assert_eq!(fault("{}{}"), (Fault::NotSingular, 2));
    }

    #[test]
    fn a_megabyte_of_brackets_is_too_deep() {
        assert_eq!(fault(&"[".repeat(1 << 20)), (Fault::TooDeep, MAX_DEPTH));
        assert_eq!(fault(&"{\"a\":".repeat(1 << 17)), (Fault::TooDeep, MAX_DEPTH * 5));
        let deep = "[".repeat(MAX_DEPTH) + &"]".repeat(MAX_DEPTH);
        assert_eq!(document(deep.as_bytes()), Ok(deep.as_bytes()));
    }
}
