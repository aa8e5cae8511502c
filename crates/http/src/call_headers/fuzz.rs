//! A fuzzer of the headers of calls, and of bodies that are written as events and lines.

use alipes_testkit::fuzz::Fuzzer;
use hyper::Request;
use hyper::header::ACCEPT;
use serde_json::{Map, Value};

use super::*;
use crate::call_form::CallForm;

/// Lines of headers, objects of headers, bodies.
fn seeds() -> Vec<Vec<u8>> {
    let seeds: [&[u8]; 8] = [
        b"host: here\nx-two: 1\nx-two: 2\ncookie: a=1\ncookie: b=\"2\"\nconnection: close",
        b"x-latin: caf\xe9\nx-empty: \naccept: text/event-stream;q=0.5, application/x-ndjson",
        br#"{"X-One": "1", "Set-Cookie": ["a=1", "b=2"], "x-none": []}"#,
        br#"{"content-length": "1"}"#,
        br#"{"x": "a\r\nb", "y": "\u00e9"}"#,
        b"{\"a\": 1,\n \"b\": [2,\r\n 3]}",
        b"event: error\r\rdata: x\n\n",
        b"",
    ];
    seeds.map(<[u8]>::to_vec).into()
}

#[test]
fn whatever_headers_and_bodies_calls_bring_neither_runs_into_another() {
    let words = ["\r\n", "transfer-encoding", "\": [\"", "\\u000a", "accept: ", "q=0.1", "data: "];
    Fuzzer::new("call-headers", seeds()).words(words).run(check);
}

fn check(input: &[u8]) {
    check_request(input);
    if let Ok(text) = std::str::from_utf8(input) {
        check_response(text);
    }
    check_events(&CallForm::Events.frame(input), input);
    let line = CallForm::Lines.frame(input);
    assert_eq!((line.len(), line.iter().position(|&byte| byte == b'\n')), (input.len() + 1, Some(input.len())));
}

/// The model gets each header that is for it, with all of its bytes.
fn check_request(input: &[u8]) {
    let mut request = Request::new(());
    for line in input.split(|&byte| byte == b'\n') {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        let (name, value) = (HeaderName::from_bytes(&line[..colon]), HeaderValue::from_bytes(&line[colon + 1..]));
        if let (Ok(name), Ok(value)) = (name, value) {
            request.headers_mut().append(name, value);
        }
    }
    let (head, ()) = request.into_parts();
    let shown: Map<String, Value> = serde_json::from_str(&of_request(&head, false)).unwrap();
    let is_shown = |name: &&HeaderName| !OF_THE_CONNECTION.contains(name);
    assert_eq!(shown.len(), head.headers.keys().filter(is_shown).count());
    for name in head.headers.keys().filter(is_shown) {
        let bytes: usize = head.headers.get_all(name).iter().map(|value| value.as_bytes().len() + 2).sum();
        assert_eq!(shown[name.as_str()].as_str().unwrap().chars().count(), bytes - 2, "{name}");
    }
    let accepts = head.headers.contains_key(ACCEPT);
    assert!(accepts || CallForm::wanted(&head.headers).is_none());
}

/// A model's headers are none of the server's, and each is one.
fn check_response(text: &str) {
    let mut headers = HeaderMap::new();
    if add_to(&mut headers, text).is_ok() {
        assert!(
            OF_THE_CONNECTION.iter().chain([&CONTENT_LENGTH, &CONTENT_TYPE]).all(|name| !headers.contains_key(name))
        );
        assert!(headers.values().all(|value| !value.as_bytes().iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0))));
    }
}

/// The event, read as a browser does, has the body's lines as its data and nothing else.
fn check_events(event: &[u8], body: &[u8]) {
    let text = event.strip_suffix(b"\n\n").unwrap();
    assert!(!text.contains(&b'\r'));
    let lines: Vec<&[u8]> =
        text.split(|&byte| byte == b'\n').map(|line| line.strip_prefix(b"data: ").unwrap()).collect();
    let breaks = |bytes: &[u8]| {
        let returns = bytes.iter().filter(|&&byte| byte == b'\r').count();
        let both = bytes.windows(2).filter(|pair| pair == b"\r\n").count();
        returns + bytes.iter().filter(|&&byte| byte == b'\n').count() - both
    };
    assert_eq!(lines.len(), breaks(body) + 1);
    let without: Vec<u8> = body.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    assert_eq!(lines.concat(), without);
}
