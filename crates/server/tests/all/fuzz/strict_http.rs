//! A reader of HTTP/1.1 that takes nothing but what RFC 9112 spells out, to compare a lenient one with.

/// What a client sent: whole requests, and whether anything stands behind them.
#[derive(Debug, PartialEq, Eq)]
pub struct Strict {
    pub requests: usize,
    pub more: bool,
}

/// Reads a connection; nothing where some of it is no strict HTTP/1.1.
pub fn read(mut wire: &[u8]) -> Option<Strict> {
    let mut requests = 0;
    while !wire.is_empty() {
        match request(wire)? {
            Some(length) => wire = &wire[length..],
            None => return Some(Strict { requests, more: true }),
        }
        requests += 1;
    }
    Some(Strict { requests, more: false })
}

/// Bytes of the request in front; `Some(None)` where it is not whole.
fn request(wire: &[u8]) -> Option<Option<usize>> {
    let Some(end) = find(wire, b"\r\n\r\n") else {
        // What there is has to be strict so far: a line feed alone ends a head for others.
        return lines(wire.strip_suffix(b"\r").unwrap_or(wire)).map(|_| None);
    };
    let mut lines = lines(&wire[..end])?.into_iter();
    request_line(lines.next()?)?;
    let (mut length, mut is_chunked, mut hosts) = (None, false, 0);
    for line in lines {
        let (name, value) = line.split_at(line.iter().position(|&byte| byte == b':')?);
        let value = value[1..].trim_ascii();
        if name.is_empty() || !name.iter().all(is_token) || !value.iter().all(is_value) {
            return None;
        }
        match name.to_ascii_lowercase().as_slice() {
            b"host" => hosts += 1,
            b"content-length" if length.is_none() => length = Some(decimal(value)?),
            b"transfer-encoding" if !is_chunked && value.eq_ignore_ascii_case(b"chunked") => is_chunked = true,
            b"content-length" | b"transfer-encoding" | b"upgrade" | b"expect" => return None,
            _ => {}
        }
    }
    if hosts != 1 || (is_chunked && length.is_some()) {
        return None;
    }
    let head = end + 4;
    let body = if is_chunked { chunks(&wire[head..])? } else { Some(length.unwrap_or(0)) };
    Some(body.map(|body| head + body).filter(|whole| *whole <= wire.len()))
}

fn request_line(line: &[u8]) -> Option<()> {
    let mut words = line.split(|&byte| byte == b' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let is_target = target.starts_with(b"/") && target.iter().all(u8::is_ascii_graphic);
    let is_method = !method.is_empty() && method.iter().all(is_token) && method != b"CONNECT";
    (is_method && is_target && version == b"HTTP/1.1" && words.next().is_none()).then_some(())
}

/// Bytes of a chunked body; `Some(None)` where it is not whole.
fn chunks(wire: &[u8]) -> Option<Option<usize>> {
    let mut at = 0;
    loop {
        let Some(line) = find(&wire[at..], b"\r\n") else { return Some(None) };
        let digits = &wire[at..at + line];
        if digits.is_empty() || digits.len() > 7 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let size = usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        at += line + 2;
        if size == 0 {
            // Trailers are not strict here.
            return match wire.get(at..at + 2) {
                None => Some(None),
                Some(b"\r\n") => Some(Some(at + 2)),
                Some(_) => None,
            };
        }
        match wire.get(at + size..at + size + 2) {
            None => return Some(None),
            Some(b"\r\n") => at += size + 2,
            Some(_) => return None,
        }
    }
}

fn lines(head: &[u8]) -> Option<Vec<&[u8]>> {
    let lines: Vec<&[u8]> = head.split(|&byte| byte == b'\n').collect();
    let (last, whole) = lines.split_last()?;
    let whole: Option<Vec<&[u8]>> = whole.iter().map(|line| line.strip_suffix(b"\r")).collect();
    let mut lines = whole?;
    lines.push(last);
    lines.iter().all(|line| !line.contains(&b'\r')).then_some(lines)
}

fn find(wire: &[u8], what: &[u8]) -> Option<usize> {
    wire.windows(what.len()).position(|window| window == what)
}

fn decimal(text: &[u8]) -> Option<usize> {
    let is_number = !text.is_empty() && text.len() <= 7 && text.iter().all(u8::is_ascii_digit);
    is_number.then(|| text.iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0')))
}

fn is_token(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte)
}

fn is_value(byte: &u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~' | 0x80..)
}

#[test]
fn what_is_ambiguous_is_not_strict() {
    let whole = |requests, more| Some(Strict { requests, more });
    assert_eq!(read(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nGE"), whole(2, true));
    assert_eq!(read(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab"), whole(1, false));
    assert_eq!(
        read(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"),
        whole(1, false)
    );
    for odd in ["Content-Length: 2\r\nContent-Length: 2", "Transfer-Encoding: chunked\r\nContent-Length: 2", " A: b"] {
        assert_eq!(read(format!("POST / HTTP/1.1\r\nHost: a\r\n{odd}\r\n\r\nab").as_bytes()), None, "{odd}");
    }
    assert_eq!(read(b"GET / HTTP/1.1\nHost: a\n\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), None);
    assert_eq!(read(b"GET / HTTP/1.1\r\nHost: a\r\n\n\r\n{"), None);
    for unfinished in ["G", "GET / HTTP/1.1\r", "GET / HTTP/1.1\r\nHost: a\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r"] {
        assert_eq!(read(unfinished.as_bytes()), whole(0, true), "{unfinished:?}");
    }
}
