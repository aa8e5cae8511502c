//! Recorded inputs: what was made to be read, and what was once read wrongly.

use std::fs;

use serde_json::Value;

use crate::repository_root;

/// Longest recording that is damaged, in bytes: those that show a limit are a MiB long, and slow to print when one
/// fails.
const LONGEST: usize = 4096;

/// A recorded request over HTTP: its JSON, and the tensors behind it.
pub struct JsonRequest {
    /// The JSON.
    pub json: Vec<u8>,
    /// The bytes behind it, where its header says that there are some.
    pub tail: Option<Vec<u8>>,
}

impl JsonRequest {
    /// The whole body.
    pub fn body(&self) -> Vec<u8> {
        [&self.json[..], self.tail.as_deref().unwrap_or_default()].concat()
    }
}

/// An input at which a fuzzer failed once.
pub struct FuzzVector {
    /// What it showed.
    pub fact: String,
    /// The input.
    pub bytes: Vec<u8>,
}

/// The requests of the JSON vectors that are not long.
pub fn json_requests() -> Vec<JsonRequest> {
    let requests = vectors("json/requests.json").into_iter().filter_map(|vector| {
        let json = vector["json"].as_str()?.as_bytes().to_vec();
        let request = JsonRequest { json, tail: vector["tail"].as_str().map(hex) };
        (request.json.len() < LONGEST).then_some(request)
    });
    let requests: Vec<_> = requests.collect();
    assert!(requests.len() > 100, "the vectors are the corpus");
    requests
}

/// The request messages of the gRPC vectors.
pub fn grpc_requests() -> Vec<Vec<u8>> {
    wires("grpc/requests.json")
}

/// The response messages of the gRPC vectors.
pub fn grpc_responses() -> Vec<Vec<u8>> {
    wires("grpc/responses.json")
}

/// The vectors of a fuzzer, none where it never failed.
pub fn fuzz_vectors(fuzzer: &str) -> Vec<FuzzVector> {
    let path = format!("fuzz/{fuzzer}.json");
    if !repository_root().join("tests/vectors").join(&path).exists() {
        return Vec::new();
    }
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let read = |vector: Value| FuzzVector { fact: text(&vector["fact"]), bytes: hex(&text(&vector["hex"])) };
    vectors(&path).into_iter().map(read).collect()
}

fn wires(path: &str) -> Vec<Vec<u8>> {
    let wires = vectors(path).into_iter().map(|vector| hex(vector["wire"].as_str().expect("a message")));
    wires.filter(|wire| wire.len() < LONGEST).collect()
}

fn vectors(path: &str) -> Vec<Value> {
    let path = repository_root().join("tests/vectors").join(path);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("a list of vectors")
}

fn hex(digits: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("pairs of digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}
