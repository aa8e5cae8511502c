//! Whether bytes are JSON, and where its values end. Source: the scanner of Go's `encoding/json`, whose texts these
//! are.

/// Deepest JSON that counts as JSON. Source: Go's `encoding/json`.
const GO_MAX_JSON_DEPTH: usize = 10_000;

const HEX: &str = "in \\u hexadecimal character escape";

/// Whether bytes are one JSON value.
pub fn is_valid(json: &[u8]) -> bool {
    fault(json, GO_MAX_JSON_DEPTH).is_none()
}

/// Why bytes are not one JSON value of at most this depth, in Go's words; none where they are one.
pub fn fault(json: &[u8], max_depth: usize) -> Option<String> {
    Scanner { json, at: 0, max_depth }.scan().err()
}

/// What may stand next.
#[derive(Clone, Copy, PartialEq)]
enum Next {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    AfterMember,
    AfterElement,
}

struct Scanner<'a> {
    json: &'a [u8],
    at: usize,
    max_depth: usize,
}

impl Scanner<'_> {
    fn scan(mut self) -> Result<(), String> {
        // True for objects, false for arrays.
        let mut open: Vec<bool> = Vec::new();
        let mut next = Next::Value;
        loop {
            self.skip_space();
            let Some(&byte) = self.json.get(self.at) else { return Err(end()) };
            next = match (next, byte) {
                (Next::ValueOrEnd, b']') | (Next::KeyOrEnd, b'}') | (Next::AfterMember, b'}') => {
                    self.at += 1;
                    open.pop();
                    after_value(&open)
                }
                (Next::AfterElement, b']') => {
                    self.at += 1;
                    open.pop();
                    after_value(&open)
                }
                (Next::AfterMember, b',') => self.step(Next::Key),
                (Next::AfterElement, b',') => self.step(Next::Value),
                (Next::AfterMember, _) => return Err(self.wrong("after object key:value pair")),
                (Next::AfterElement, _) => return Err(self.wrong("after array element")),
                (Next::Colon, b':') => self.step(Next::Value),
                (Next::Colon, _) => return Err(self.wrong("after object key")),
                (Next::Key | Next::KeyOrEnd, b'"') => {
                    self.string()?;
                    Next::Colon
                }
                (Next::Key | Next::KeyOrEnd, _) => return Err(self.wrong("looking for beginning of object key string")),
                (Next::Value | Next::ValueOrEnd, b'{' | b'[') => {
                    if open.len() == self.max_depth {
                        return Err(self.wrong("exceeded max depth"));
                    }
                    open.push(byte == b'{');
                    self.step(if byte == b'{' { Next::KeyOrEnd } else { Next::ValueOrEnd })
                }
                (Next::Value | Next::ValueOrEnd, _) => {
                    self.scalar(byte)?;
                    after_value(&open)
                }
            };
            if open.is_empty() && !matches!(next, Next::Value) {
                return self.finish();
            }
        }
    }

    fn step(&mut self, next: Next) -> Next {
        self.at += 1;
        next
    }

    fn finish(&mut self) -> Result<(), String> {
        self.skip_space();
        if self.at == self.json.len() { Ok(()) } else { Err(self.wrong("after top-level value")) }
    }

    fn skip_space(&mut self) {
        self.at += self.json[self.at..].iter().take_while(|byte| is_space(**byte)).count();
    }

    /// Go looks at a space where the bytes have ended.
    fn byte(&self) -> u8 {
        self.json.get(self.at).copied().unwrap_or(b' ')
    }

    fn wrong(&self, place: &str) -> String {
        format!("invalid character {} {place}", quoted_byte(self.byte()))
    }

    fn scalar(&mut self, first: u8) -> Result<(), String> {
        match first {
            b'"' => self.string(),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(self.wrong("looking for beginning of value")),
        }
    }

    fn literal(&mut self, literal: &'static [u8]) -> Result<(), String> {
        for &expected in literal {
            if self.byte() != expected {
                let (name, expected) = (String::from_utf8_lossy(literal), char::from(expected));
                return Err(self.wrong(&format!("in literal {name} (expecting '{expected}')")));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), String> {
        self.at += 1;
        loop {
            let Some(&byte) = self.json.get(self.at) else { return Err(end()) };
            match byte {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => self.escape()?,
                0..0x20 => return Err(self.wrong("in string literal")),
                _ => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<(), String> {
        self.at += 1;
        match self.byte() {
            b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => self.at += 1,
            b'u' => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.byte().is_ascii_hexdigit() {
                        return Err(self.wrong(HEX));
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.wrong("in string escape code")),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), String> {
        if self.byte() == b'-' {
            self.at += 1;
        }
        match self.byte() {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.digits(),
            _ => return Err(self.wrong("in numeric literal")),
        }
        if self.byte() == b'.' {
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if matches!(self.byte(), b'e' | b'E') {
            self.at += 1;
            if matches!(self.byte(), b'+' | b'-') {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn some_digits(&mut self, place: &str) -> Result<(), String> {
        if !self.byte().is_ascii_digit() {
            return Err(self.wrong(place));
        }
        self.digits();
        Ok(())
    }

    fn digits(&mut self) {
        self.at += self.json[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    }
}

fn after_value(open: &[bool]) -> Next {
    match open.last() {
        Some(true) => Next::AfterMember,
        // At the top, what follows is not looked at with this.
        Some(false) | None => Next::AfterElement,
    }
}

fn end() -> String {
    "unexpected end of JSON input".to_owned()
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// A byte as Go's errors show it: as the character of that number, quoted.
fn quoted_byte(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        0x07 => r"'\a'".to_owned(),
        0x08 => r"'\b'".to_owned(),
        0x0c => r"'\f'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        0x0b => r"'\v'".to_owned(),
        0..0x20 | 0x7f => format!(r"'\x{byte:02x}'"),
        0x80..=0xa0 | 0xad => format!(r"'\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}

/// The position behind the value that begins at one, in valid JSON; in any other, some position behind it.
pub(crate) fn value_end(json: &[u8], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while let Some(&byte) = json.get(at) {
        match byte {
            b'"' => at = string_end(json, at) - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => depth -= 1,
            b',' | b':' if depth == 0 => return at,
            _ if depth == 0 && is_space(byte) => return at,
            _ => {}
        }
        at += 1;
        // Strings, objects and arrays end with themselves; numbers and words with what follows.
        if depth == 0 && matches!(byte, b'"' | b'}' | b']') {
            return at;
        }
    }
    json.len()
}

/// The position behind the string that begins at one.
fn string_end(json: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = json.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    json.len()
}

/// The members of a JSON object: its keys as they stand there, quotes included, and its values.
pub(crate) fn members(object: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut values = elements(object);
    std::iter::from_fn(move || {
        let key = values.next()?;
        Some((key, values.next()?))
    })
}

/// The elements of a JSON array; of an object its keys and values in turn.
pub(crate) fn elements(array: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = 1;
    std::iter::from_fn(move || {
        while array.get(at).is_some_and(|byte| is_space(*byte) || matches!(byte, b',' | b':')) {
            at += 1;
        }
        let start = at;
        if matches!(array.get(start), None | Some(b']' | b'}')) {
            return None;
        }
        at = value_end(array, start);
        Some(&array[start..at])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault_of(json: &str) -> Option<String> {
        fault(json.as_bytes(), 5)
    }

    #[test]
    fn json_has_no_fault() {
        for json in [
            "1",
            " null ",
            "[]",
            "{}",
            "[[],{}]",
            "-0.5e+10",
            r#"{"a": [1, 2, {"b": "\u00fc\n"}], "c": true}"#,
            "\"\"",
            "[ ]",
            "{ }",
            "0",
            "1E9",
            "[[[[[1]]]]]",
            "false\n",
        ] {
            assert_eq!(fault_of(json), None, "{json}");
        }
    }

    /// Recorded from Go 1.26.
    #[test]
    fn a_fault_has_the_text_of_go() {
        for (json, text) in [
            ("", "unexpected end of JSON input"),
            ("  ", "unexpected end of JSON input"),
            ("{\"a\"", "unexpected end of JSON input"),
            ("[1,", "unexpected end of JSON input"),
            ("\"a", "unexpected end of JSON input"),
            ("oh", "invalid character 'o' looking for beginning of value"),
            ("<p>", "invalid character '<' looking for beginning of value"),
            ("[1 2]", "invalid character '2' after array element"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"),
            ("{1}", "invalid character '1' looking for beginning of object key string"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("1 2", "invalid character '2' after top-level value"),
            ("01", "invalid character '1' after top-level value"),
            ("tru", "invalid character ' ' in literal true (expecting 'e')"),
            ("nul!", "invalid character '!' in literal null (expecting 'l')"),
            ("1.", "invalid character ' ' after decimal point in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("-", "invalid character ' ' in numeric literal"),
            ("1e+", "invalid character ' ' in exponent of numeric literal"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("\"\\u12g4\"", "invalid character 'g' in \\u hexadecimal character escape"),
            ("\"\n\"", "invalid character '\\n' in string literal"),
            ("\"\u{1}\"", "invalid character '\\x01' in string literal"),
            ("'", "invalid character '\\'' looking for beginning of value"),
            ("\u{fc}", "invalid character 'Ã' looking for beginning of value"),
            ("[[[[[[", "invalid character '[' exceeded max depth"),
        ] {
            assert_eq!(fault_of(json).as_deref(), Some(text), "{json}");
        }
    }

    #[test]
    fn members_and_elements_are_found_in_any_spacing() {
        let object = br#"{ "a" : [1, "}"], "b":{"c":[]} ,"d": -1.5e3}"#;
        let found: Vec<_> = members(object).collect();
        let expected: [(&[u8], &[u8]); 3] =
            [(b"\"a\"", br#"[1, "}"]"#), (b"\"b\"", br#"{"c":[]}"#), (b"\"d\"", b"-1.5e3")];
        assert_eq!(found, expected);
        let found: Vec<_> = elements(br#"[ "x\"]" ,null,{"a":1} , [2] ]"#).collect();
        let expected: [&[u8]; 4] = [br#""x\"]""#, b"null", br#"{"a":1}"#, b"[2]"];
        assert_eq!(found, expected);
        assert_eq!(elements(b"[]").count() + elements(b"[ ]").count() + members(b"{}").count(), 0);
    }

    #[test]
    fn what_is_no_json_ends_somewhere() {
        for json in ["[", "[1", "[\"", "[\"\\", "{\"a\"", "{\"a\":", "[}", "[,", "", "]"] {
            let (_, _) = (elements(json.as_bytes()).count(), members(json.as_bytes()).count());
        }
    }
}
