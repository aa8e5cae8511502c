//! Connections of HTTP/1, and those that turn out to be HTTP/2.

use alipes_net::policy::ListenerKind;
use alipes_testkit::corpus::{self, JsonRequest};
use alipes_testkit::fuzz::{Choices, Fuzzer, pieces};

use super::{INPUTS, Server, strict_http};

/// Bytes of an input's end that cut it into pieces.
const CHOICES: usize = 8;

/// Most pieces but the last.
const PIECES: usize = 4;

/// Longest answer: none says more than its request and some words, and statistics of two models.
const LONGEST_ANSWER: usize = 256 << 10;

const WORDS: [&str; 24] = [
    "GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /v2/models/echo/infer HTTP/1.1\r\n",
    "/v2/models/many/generate_stream",
    "/v2/models/echo/versions/3/stats",
    "/v2/models/echo/sequences/7/state",
    "/v2/repository/index",
    "/v2/repository/models/echo/load",
    "/v2/logging",
    "/v2/trace/setting",
    "/v2/systemsharedmemory/region/r/register",
    "Host: a\r\n",
    "Content-Length: 1\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Inference-Header-Content-Length: 1\r\n",
    "Content-Encoding: gzip\r\n",
    "Accept-Encoding: gzip\r\n",
    "Connection: close\r\n",
    "Connection: keep-alive\r\n",
    "Expect: 100-continue\r\n",
    "HTTP/1.0\r\n",
    "\r\n\r\n",
    "0\r\n\r\n",
    "traceparent: 00-",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
];

fn post(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\n{headers}Content-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

fn infer(request: &JsonRequest) -> Vec<u8> {
    let length = request.json.len();
    let headers = match request.tail {
        Some(_) => format!("Inference-Header-Content-Length: {length}\r\n"),
        None => String::new(),
    };
    post("/v2/models/echo/infer", &headers, &request.body())
}

fn seeds() -> Vec<Vec<u8>> {
    let own = br#"{"inputs":[{"name":"X","shape":[2],"datatype":"FP32","data":[1,2]}]}"#;
    let chunked =
        b"POST /v2/models/echo/infer HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"inp\r\n0\r\n\r\n";
    let mut wires: Vec<Vec<u8>> = corpus::json_requests().iter().step_by(5).map(infer).collect();
    wires.extend([
        post("/v2/models/echo/infer", "", own),
        [post("/v2/models/echo/infer", "", own), post("/v2/models/echo/versions/3/infer", "", own)].concat(),
        post("/v2/models/many/generate_stream", "", br#"{"X":[1,2]}"#),
        post("/v2/models/echo/generate", "", br#"{"X":[1,2]}"#),
        post("/v2/repository/index", "", br#"{"ready":true}"#),
        post("/v2/repository/models/m/load", "", br#"{"parameters":{"config":"{}","file:1/m":"AA=="}}"#),
        post("/v2/logging", "", br#"{"log_verbose_level":1,"log_format":"ISO8601"}"#),
        post("/v2/trace/setting", "", br#"{"trace_level":["TIMESTAMPS"],"trace_rate":"1"}"#),
        post("/v2/systemsharedmemory/region/r/register", "", br#"{"key":"/k","offset":0,"byte_size":4}"#),
        chunked.to_vec(),
    ]);
    for path in ["/v2", "/v2/health/ready", "/v2/models/echo/config", "/v2/models/stats", "/v2/models/echo/explain"] {
        wires.push(format!("GET {path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip;q=0.5\r\n\r\n").into_bytes());
    }
    wires.into_iter().map(|wire| Choices::seed(&wire, &[0xff; CHOICES])).collect()
}

#[test]
fn whatever_a_client_sends_over_http_it_is_answered_and_the_server_serves() {
    let server = Server::open(ListenerKind::Http);
    Fuzzer::new("http-connection", seeds()).words(WORDS).inputs(INPUTS).run(move |input| check(&server, input));
}

fn check(server: &Server, input: &[u8]) {
    let (wire, mut choices) = Choices::split(input, CHOICES);
    let (answer, is_closed) = server.answer(&pieces(wire, &mut choices, PIECES));
    server.check_idle();
    assert!(answer.len() <= LONGEST_ANSWER + 8 * wire.len(), "{} bytes", answer.len());
    if wire.starts_with(b"PRI * HTTP/2.0\r\n") {
        return;
    }
    assert!(is_closed, "the connection stays open");
    let answers = statuses(&answer);
    if let Some(sent) = strict_http::read(wire) {
        let most = sent.requests + usize::from(sent.more);
        assert!(answers.len() <= most, "{answers:?} for {} requests", sent.requests);
    }
    let (health, _) = server.answer(&[b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"]);
    assert!(health.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&health));
}

/// What is said to a client that says nothing, or nothing more, before its connection is closed.
const HEAD_TIMEOUT: u16 = 408;

/// The statuses of the answers to requests, each of which is whole.
fn statuses(mut answer: &[u8]) -> Vec<u16> {
    let mut statuses = Vec::new();
    while !answer.is_empty() {
        let text = || String::from_utf8_lossy(answer);
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("half a head: {}", text())) + 4;
        let head = std::str::from_utf8(&answer[..end]).expect("a head is text");
        let status = head.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse::<u16>().ok());
        let status = status.unwrap_or_else(|| panic!("no status: {head}"));
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        answer = &answer[end..];
        if status >= 200 && status != HEAD_TIMEOUT {
            statuses.push(status);
        }
        match length {
            Some(length) => answer = answer.get(length..).unwrap_or_else(|| panic!("half a body behind {head}")),
            // The last of a connection: nothing is pipelined behind events here.
            None if is_chunked || status >= 200 => return statuses,
            None => {}
        }
    }
    statuses
}
