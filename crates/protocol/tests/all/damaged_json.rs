//! Bodies of requests, damaged: the decoder answers every one of them, and reads nothing that is not there.

use alipes_protocol::codec::elements;
use alipes_protocol::codec::json::decode_request;
use alipes_protocol::codec::json::value::Value;
use alipes_protocol::limits::JSON_MAX_DEPTH;
use alipes_protocol::{InferRequest, NoRegions};
use alipes_testkit::mutation::damaged;
use bytes::Bytes;
use proptest::prelude::*;

const VECTORS: &str = include_str!("../../../../tests/vectors/json/requests.json");

/// Limit of the damaged requests in bytes.
const MAX_INPUT_BYTES: usize = 1 << 16;

/// Levels of a request around a tensor's values, which do not count.
const ENVELOPE_DEPTH: usize = 3;

/// Longest vector that is damaged: those that show a limit are a MiB long, and slow to print when something is found.
const LONGEST: usize = 4096;

/// Longest error text in bytes: room for what an ordinary name brings into it.
const LONGEST_TEXT: usize = 2 * MAX_INPUT_BYTES;

fn corpus() -> Vec<Vec<u8>> {
    let vectors: Vec<serde_json::Value> = serde_json::from_str(VECTORS).expect("a list of vectors");
    let bodies = vectors.iter().filter_map(|vector| {
        let tail = vector["tail"].as_str().unwrap_or_default();
        Some([vector["json"].as_str()?.as_bytes(), tail.as_bytes()].concat())
    });
    let bodies: Vec<_> = bodies.filter(|body| body.len() < LONGEST).collect();
    assert!(bodies.len() > 100, "the vectors are the corpus");
    bodies
}

/// What must hold of a request, however odd the body was.
fn check(request: &InferRequest, body: &Bytes) {
    let read: usize =
        request.inputs.iter().filter(|input| lies_within(&input.data, body)).map(|it| it.data.len()).sum();
    assert!(read <= body.len(), "the same bytes were given to two inputs");
    for input in &request.inputs {
        assert!(input.data.len() <= body.len().max(MAX_INPUT_BYTES));
        if let Some(size) = input.datatype.size().filter(|_| !lies_within(&input.data, body)) {
            assert_eq!(input.data.len() % size, 0, "half an element was made");
        }
    }
}

fn lies_within(data: &Bytes, body: &Bytes) -> bool {
    body.as_ptr_range().contains(&data.as_ptr()) && !data.is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, max_shrink_iters: 4_000, ..Default::default() })]

    #[test]
    fn every_damaged_body_is_read_or_refused(body in damaged(corpus()), length in any::<prop::sample::Index>()) {
        let body = Bytes::from(body);
        for length in [None, Some(length.index(body.len() + 2))] {
            match decode_request(&body, length, "m", MAX_INPUT_BYTES, &mut NoRegions) {
                Ok(request) => check(&request, &body),
                Err(error) => prop_assert!(!error.message.is_empty() && error.message.len() < LONGEST_TEXT),
            }
        }
    }

    #[test]
    fn every_damaged_document_ends(document in damaged(corpus())) {
        if let Ok(value) = Value::parse(&document) {
            prop_assert!(depth(value) <= JSON_MAX_DEPTH + ENVELOPE_DEPTH);
        }
    }

    #[test]
    fn strings_of_any_bytes_are_counted_or_refused(data in damaged(vec![b"\x02\0\0\0ab\0\0\0\0\x01\0\0\0c".to_vec()])) {
        match elements::count(&data) {
            Ok(count) => {
                let strings: Vec<&[u8]> = elements::iter(&data).collect();
                prop_assert_eq!(strings.len(), count);
                prop_assert_eq!(strings.iter().map(|string| string.len() + 4).sum::<usize>(), data.len());
            }
            Err(broken) => prop_assert!(broken.text("X").contains('X')),
        }
    }
}

fn depth(value: Value<'_>) -> usize {
    let elements = value.elements().into_iter().flatten().map(depth).max();
    let members = value.members().into_iter().flatten().map(|(_, value)| depth(value)).max();
    let inner = elements.max(members).unwrap_or(0);
    inner + usize::from(value.is_array() || value.is_object())
}
