//! String tokens: finding their end, and undoing their escapes.

use std::borrow::Cow;

use super::error::{Fault, SyntaxError};

/// A string between its quotation marks, as it stands in the document.
///
/// The bytes are not checked to be UTF-8: `BYTES` elements may be anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted<'a> {
    pub raw: &'a [u8],
    pub escaped: bool,
}

impl<'a> Quoted<'a> {
    /// The string's bytes; copied only where there are escapes to undo.
    pub fn bytes(self) -> Cow<'a, [u8]> {
        if self.escaped { Cow::Owned(unescape(self.raw)) } else { Cow::Borrowed(self.raw) }
    }

    /// Whether the string is these bytes.
    pub fn is(self, bytes: &[u8]) -> bool {
        if !self.escaped {
            return self.raw == bytes;
        }
        // `\u0061` is the longest form of a byte, so a text that is longer still need not be looked at.
        self.raw.len() <= "\\u0061".len() * bytes.len() && unescape(self.raw) == bytes
    }
}

/// Reads the string whose opening quotation mark stands at `start`; also gives the offset behind the closing one.
pub(super) fn lex(text: &[u8], start: usize) -> Result<(Quoted<'_>, usize), SyntaxError> {
    let begin = start + 1;
    let mut at = begin;
    let mut escaped = false;
    loop {
        at = skip_plain(text, at);
        match text.get(at) {
            Some(b'"') => return Ok((Quoted { raw: &text[begin..at], escaped }, at + 1)),
            Some(b'\\') => {
                escaped = true;
                at = escape(text, at)?.1;
            }
            // A zero byte ends a document as its real end does.
            None | Some(0) => return Err(SyntaxError::new(Fault::NoQuote, at)),
            Some(_) => return Err(SyntaxError::new(Fault::BadEscape, at)),
        }
    }
}

/// The offset of the first quotation mark, backslash or control character; eight bytes at a time.
fn skip_plain(text: &[u8], mut at: usize) -> usize {
    while let Some(word) = text.get(at..).and_then(|rest| rest.first_chunk()) {
        let found = special_bytes(u64::from_le_bytes(*word));
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    text[at..]
        .iter()
        .position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20)
        .map_or(text.len(), |more| at + more)
}

/// Marks the lowest byte that is a quotation mark, a backslash or a control character, and perhaps bytes above it.
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let zero_bytes = |word: u64| word.wrapping_sub(ONES) & !word;
    let quote = zero_bytes(word ^ (ONES * b'"' as u64));
    let backslash = zero_bytes(word ^ (ONES * b'\\' as u64));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & (ONES << 7)
}

/// The character that the escape at `at` stands for, and the offset behind it. Errors point at the backslash.
fn escape(text: &[u8], at: usize) -> Result<(char, usize), SyntaxError> {
    let plain = match text.get(at + 1) {
        Some(&byte @ (b'"' | b'\\' | b'/')) => byte as char,
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode(text, at),
        _ => return Err(SyntaxError::new(Fault::BadEscape, at)),
    };
    Ok((plain, at + 2))
}

/// `\uXXXX`, or two of them that form a surrogate pair.
fn unicode(text: &[u8], at: usize) -> Result<(char, usize), SyntaxError> {
    let invalid_pair = SyntaxError::new(Fault::BadSurrogate, at);
    let high = hex(text, at + 2).ok_or(SyntaxError::new(Fault::BadHex, at))?;
    if !(0xD800..0xE000).contains(&high) {
        return Ok((char::from_u32(high).ok_or(invalid_pair)?, at + 6));
    }
    if high >= 0xDC00 || text.get(at + 6..at + 8) != Some(b"\\u") {
        return Err(invalid_pair);
    }
    let low = hex(text, at + 8).ok_or(SyntaxError::new(Fault::BadHex, at))?;
    if !(0xDC00..0xE000).contains(&low) {
        return Err(invalid_pair);
    }
    let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    Ok((char::from_u32(code).ok_or(invalid_pair)?, at + 12))
}

fn hex(text: &[u8], at: usize) -> Option<u32> {
    let digits = text.get(at..at + 4)?;
    digits.iter().try_fold(0, |code, &digit| Some(code << 4 | (digit as char).to_digit(16)?))
}

/// Undoes the escapes of a string that [`lex`] accepted.
fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(more) = raw[at..].iter().position(|&byte| byte == b'\\') {
        bytes.extend_from_slice(&raw[at..at + more]);
        // The token was checked when it was found, so the other arm is never taken.
        let Ok((character, end)) = escape(raw, at + more) else { break };
        bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        at = end;
    }
    bytes.extend_from_slice(&raw[at..]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<Vec<u8>, SyntaxError> {
        lex(text, 0).map(|(quoted, _)| quoted.bytes().into_owned())
    }

    fn fault(text: &[u8]) -> (Fault, usize) {
        let error = read(text).unwrap_err();
        (error.fault, error.offset)
    }

    #[test]
    fn the_end_is_found_behind_any_number_of_plain_bytes() {
        for length in 0..40 {
            let mut text = vec![b'"'];
            text.resize(length + 1, 0xff);
            text.extend_from_slice(b"\",");
            let (quoted, end) = lex(&text, 0).unwrap();
            assert_eq!((quoted.raw.len(), quoted.escaped, end), (length, false, length + 2));
        }
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(read(br#""a\"\\\/\b\f\n\r\t\u0041z""#).unwrap(), b"a\"\\/\x08\x0c\n\r\tAz");
        assert_eq!(read(br#""\ud83d\ude00 \u00e9""#).unwrap(), "😀 é".as_bytes());
    }

    #[test]
    fn faults_point_where_rapidjson_points() {
        assert_eq!(fault(br#""ab"#), (Fault::NoQuote, 3));
        assert_eq!(fault(b"\"a\0b\""), (Fault::NoQuote, 2));
        assert_eq!(fault(b"\"a\nb\""), (Fault::BadEscape, 2));
        assert_eq!(fault(br#""a\qb""#), (Fault::BadEscape, 2));
        assert_eq!(fault(br#""a\u12x4""#), (Fault::BadHex, 2));
        assert_eq!(fault(br#""a\u12"#), (Fault::BadHex, 2));
        assert_eq!(fault(br#""\ud83dx""#), (Fault::BadSurrogate, 1));
        assert_eq!(fault(br#""\ud83d\u0041""#), (Fault::BadSurrogate, 1));
        assert_eq!(fault(br#""\ude00""#), (Fault::BadSurrogate, 1));
    }
}
