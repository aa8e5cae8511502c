//! Damaged request messages of gRPC: readers of their beginning, of pieces and of the whole message come to the same
//! end.

use alipes_protocol::codec::proto::inference::ModelInferRequest;
use alipes_protocol::codec::proto::{Splitter, decode_request, first_raw_tensor, named_model};
use alipes_protocol::{NoRegions, TritonRelease};
use alipes_testkit::mutation::damaged;
use bytes::Bytes;
use proptest::prelude::*;
use prost::Message;

use super::every_tensor::Sink;

const VECTORS: &str = include_str!("../../../../tests/vectors/grpc/requests.json");

fn corpus() -> Vec<Vec<u8>> {
    let vectors: Vec<serde_json::Value> = serde_json::from_str(VECTORS).expect("a list of vectors");
    let bytes = |digits: &str| -> Vec<u8> {
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits")).collect()
    };
    let messages: Vec<_> = vectors.iter().map(|vector| bytes(vector["wire"].as_str().expect("a message"))).collect();
    assert!(messages.len() > 30, "the vectors are the corpus");
    messages
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, max_shrink_iters: 4_000, ..Default::default() })]

    #[test]
    fn every_damaged_message_is_read_or_refused(wire in damaged(corpus())) {
        let wire = Bytes::from(wire);
        let Ok(message) = ModelInferRequest::decode(wire.clone()) else { return Ok(()) };
        let raw: usize = message.raw_input_contents.iter().map(Bytes::len).sum();
        prop_assert!(raw <= wire.len());
        match decode_request(message, TritonRelease::default(), &mut NoRegions) {
            Ok(request) => {
                // A typed value of one byte may stand for four.
                let held: usize = request.inputs.iter().map(|input| input.data.len()).sum();
                prop_assert!(held <= 8 * wire.len());
            }
            Err(error) => prop_assert!(!error.message.is_empty()),
        }
    }

    #[test]
    fn a_damaged_message_is_the_same_in_pieces(wire in damaged(corpus()), piece_bytes in 1..64_usize) {
        let mut sink = Sink::default();
        let mut splitter = Splitter::new(wire.len());
        wire.chunks(piece_bytes).for_each(|piece| splitter.take(piece, &mut sink));
        prop_assert_eq!(splitter.left(), 0);
        let skeleton = splitter.finish();
        let mut in_pieces = ModelInferRequest::decode(skeleton.message.clone()).ok();
        if let Some(message) = &mut in_pieces {
            skeleton.fill(message, sink.0.into_iter().map(Bytes::from));
        }
        // As bytes, because NaN differs from itself.
        let bytes = |message: ModelInferRequest| message.encode_to_vec();
        prop_assert_eq!(in_pieces.map(bytes), ModelInferRequest::decode(&wire[..]).ok().map(bytes));
    }

    #[test]
    fn looking_early_into_a_damaged_message_stays_within_it(wire in damaged(corpus()), seen in any::<prop::sample::Index>()) {
        let head = &wire[..seen.index(wire.len() + 1)];
        prop_assert!(first_raw_tensor(head).is_none_or(|begin| begin <= head.len()));
        let named = named_model(head).map_or(0, |(name, version)| name.len() + version.len());
        prop_assert!(named <= head.len());
    }
}

#[test]
fn the_model_that_is_seen_early_is_the_one_that_is_named() {
    let mut seen = 0;
    for wire in corpus() {
        let Ok(message) = ModelInferRequest::decode(&wire[..]) else { continue };
        for length in 0..=wire.len() {
            if let Some(named) = named_model(&wire[..length]) {
                assert_eq!(named, (message.model_name.as_str(), message.model_version.as_str()));
                seen += 1;
            }
        }
    }
    assert!(seen > 0, "no vector names its model first");
}
