//! The JSON codec against the golden wire vectors.

use alipes_protocol::codec::json::{DecodeOptions, decode_request, encode_response};
use alipes_protocol::{NoRegions, Origin, TritonRelease};
use bytes::Bytes;
use serde_json::Value;

const REQUESTS: &str = include_str!("../../../../tests/vectors/json/requests.json");
const RESPONSES: &str = include_str!("../../../../tests/vectors/json/responses.json");

/// Limit of the vectors' requests in bytes.
const MAX_INPUT_BYTES: usize = 1 << 20;

#[test]
fn every_request_vector_is_read_as_it_says() {
    for vector in crate::support::vectors(REQUESTS) {
        let json = json_bytes(&vector);
        let header_length = vector.get("tail").map(|_| json.len());
        let tail = vector.get("tail").map(crate::support::hex).unwrap_or_default();
        let body = Bytes::from([json, tail].concat());
        let recorded = DecodeOptions { release: TritonRelease::V2_51, ..DecodeOptions::from(MAX_INPUT_BYTES) };
        let mut read =
            decode_request(&body, header_length, &crate::support::text(&vector["model"]), recorded, &mut NoRegions);
        if let Ok(request) = &mut read {
            // The vectors' objects have no order.
            request.parameters.sort_by(|(a, _), (b, _)| a.cmp(b));
        }
        let expected = match vector.get("error") {
            Some(error) => Err(crate::support::error(error)),
            None => Ok(crate::support::request(&vector["request"])),
        };
        // As text, because NaN differs from itself.
        assert_eq!(format!("{read:?}"), format!("{expected:?}"), "{}", vector["fact"]);
    }
}

#[test]
fn every_response_vector_is_written_as_it_says() {
    for vector in crate::support::vectors(RESPONSES) {
        let outputs = crate::support::outputs(&vector["outputs"]);
        let by_default = vector["binary_by_default"].as_bool().unwrap();
        let written = encode_response(&crate::support::response(&vector["response"]), &outputs, by_default);
        let fact = &vector["fact"];
        if let Some(error) = vector.get("error") {
            assert_eq!(written, Err(crate::support::error(error).at(Origin::Model)), "{fact}");
            continue;
        }
        let written = written.unwrap();
        let tail: Vec<Vec<u8>> = crate::support::list(&vector["tail"]).iter().map(crate::support::hex).collect();
        assert_eq!(String::from_utf8_lossy(&written.head), String::from_utf8_lossy(&json_bytes(&vector)), "{fact}");
        assert_eq!(written.head, json_bytes(&vector), "{fact}");
        assert_eq!(written.binary, !tail.is_empty(), "{fact}");
        assert_eq!(written.tail, tail, "{fact}");
    }
}

/// Outputs leave as the slices that the model gave.
#[test]
fn binary_outputs_are_not_copied() {
    for vector in crate::support::vectors(RESPONSES) {
        let response = crate::support::response(&vector["response"]);
        let written = encode_response(&response, &[], true).unwrap();
        let outputs =
            response.outputs.iter().filter(|output| !output.data.is_empty()).map(|output| output.data.as_ptr());
        assert!(written.tail.iter().map(|slice| slice.as_ptr()).eq(outputs), "{}", vector["fact"]);
    }
}

fn json_bytes(vector: &Value) -> Vec<u8> {
    vector
        .get("json")
        .map_or_else(|| crate::support::hex(&vector["json_hex"]), |json| crate::support::text(json).into_bytes())
}
