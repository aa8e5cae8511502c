//! A fuzzer of states that clients bring.

use alipes_testkit::fuzz::{Choices, Fuzzer};
use alipes_testkit::memory::{CountedAllocator, peak};

use super::*;

#[global_allocator]
static ALLOCATOR: CountedAllocator = CountedAllocator;

/// Most bytes that reading holds beside the bytes of the states and the quotation in an error.
const BYTES_BESIDE: usize = 4 << 10;

fn port(input: &str, datatype: Datatype, shape: &[i64]) -> StatePort {
    StatePort {
        input: input.to_owned(),
        output: "NEW".to_owned(),
        datatype,
        shape: shape.into(),
        output_index: 0,
        initial: StateTensor { shape: shape.into(), data: Bytes::new() },
    }
}

/// What models keep, by number.
fn models() -> [States; 3] {
    [
        States { list: vec![port("OLD", Datatype::Fp32, &[1, -1])] },
        States { list: vec![port("WORDS", Datatype::Bytes, &[-1]), port("COUNT", Datatype::Int64, &[])] },
        States { list: Vec::new() },
    ]
}

#[test]
fn whatever_a_client_brings_is_a_checkpoint_of_the_model_or_refused() {
    let state = |shape: &[i64], data: &[u8]| StateTensor { shape: shape.into(), data: Bytes::copy_from_slice(data) };
    let [floats, mixed, none] = models();
    let checkpoints = [
        floats.to_bytes(&[&state(&[1, 2], &[1, 2, 3, 4, 5, 6, 7, 8])]),
        floats.to_bytes(&[&state(&[1, 0], &[])]),
        mixed.to_bytes(&[&state(&[2], b"\x02\0\0\0ab\0\0\0\0"), &state(&[], &[9; 8])]),
        none.to_bytes(&[]),
    ];
    let seeds = checkpoints.iter().flat_map(|bytes| (0..3).map(|model| Choices::seed(bytes, &[model])));
    Fuzzer::new("checkpoint-states", seeds).words(["ALIPSTA1", "FP32", "BYTES", "INT64", "OLD", "WORDS"]).run(check);
}

fn check(input: &[u8]) {
    let (bytes, mut choices) = Choices::split(input, 1);
    let models = models();
    let states = &models[usize::from(choices.byte()) % models.len()];
    let (read, held) = peak(|| states.of_bytes(bytes));
    assert!(held <= BYTES_BESIDE + 2 * bytes.len(), "{held} bytes for {}", bytes.len());
    match read {
        Ok(tensors) => assert_eq!(states.to_bytes(&tensors.iter().collect::<Vec<_>>()), bytes),
        Err(error) => assert!(!error.message.is_empty() && error.message.len() < 2_000, "{}", error.message),
    }
}
