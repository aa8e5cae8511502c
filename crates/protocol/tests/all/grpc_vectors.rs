//! The gRPC codec against the golden wire vectors.

use alipes_protocol::codec::proto::inference::ModelInferRequest;
use alipes_protocol::codec::proto::{ResponseMessage, decode_request};
use alipes_protocol::{NoRegions, TritonRelease};
use bytes::Bytes;
use prost::Message;

const REQUESTS: &str = include_str!("../../../../tests/vectors/grpc/requests.json");
const RESPONSES: &str = include_str!("../../../../tests/vectors/grpc/responses.json");

#[test]
fn every_request_vector_is_read_as_it_says() {
    for vector in crate::support::vectors(REQUESTS) {
        let message = ModelInferRequest::decode(Bytes::from(crate::support::hex(&vector["wire"]))).expect("a message");
        let read = decode_request(message, TritonRelease::V2_51, &mut NoRegions);
        match vector.get("error") {
            Some(error) => assert_eq!(read, Err(crate::support::error(error)), "{}", vector["fact"]),
            None => assert_eq!(read, Ok(crate::support::request(&vector["request"])), "{}", vector["fact"]),
        }
    }
}

#[test]
fn every_response_vector_is_written_as_it_says() {
    for vector in crate::support::vectors(RESPONSES) {
        let response = crate::support::response(&vector["response"]);
        assert_eq!(
            ResponseMessage::from(&response).pieces(&[]).concat(),
            crate::support::hex(&vector["wire"]),
            "{}",
            vector["fact"]
        );
    }
}
