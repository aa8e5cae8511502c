//! Fuzzers of the frames, both ways: what a worker says, and what it reads out of memory that models may write to.

use alipes_testkit::fuzz::Fuzzer;
use alipes_testkit::memory::{CountedAllocator, peak};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::*;

#[global_allocator]
static ALLOCATOR: CountedAllocator = CountedAllocator;

/// Most bytes that reading holds for each byte of a frame, and beside them: an empty text of four bytes is a string of
/// twenty-four, in a list with room for as many again.
const BYTES_PER_BYTE: usize = 32;
const BYTES_BESIDE: usize = 4 << 10;

/// Length of the request arena that a worker sees here.
const ARENA_BYTES: u64 = 1 << 20;

/// Messages as workers send them, without large tensors: those lie elsewhere.
fn messages() -> Vec<Vec<u8>> {
    let mut runner = TestRunner::deterministic();
    let mut message = || any_message().new_tree(&mut runner).expect("a message").current();
    (0..200).map(|_| encode(&message(), &Store::default())).collect()
}

/// A response arena with one slot of each kind that a frame can name.
fn lent() -> Store {
    let mut words = Vec::new();
    (0..200u32).for_each(|number| alipes_protocol::codec::elements::push(&mut words, &[b'w'; 400][..number as usize]));
    let slots = [(0, vec![7; INLINE_BYTES + 1]), (1 << 20, words), (1 << 21, vec![0xff; 64])];
    Store(RefCell::new(slots.into_iter().map(|(offset, bytes)| (offset, bytes.into())).collect()))
}

#[test]
fn whatever_a_worker_says_is_a_message_or_malformed() {
    Fuzzer::new("worker-messages", messages()).run(check_message);
}

#[test]
fn whatever_stands_in_the_arena_is_a_request_or_malformed() {
    let data = Bytes::from_static(&[1, 2, 3, 4, 5, 6, 7, 8]);
    let mut writer = Writer::new();
    let head = RequestHead {
        id: "id",
        correlation_id: &CorrelationId::Text("left".to_owned()),
        flags: 3,
        timeout_us: 9,
        priority: 1,
        parameters: "{}",
        outputs: &[0, 2],
        trace: Some("{\"traceparent\":\"\"}"),
    };
    let named = TensorName::Name("X");
    let tensor = TensorRef { name: named, datatype: Datatype::Fp32, shape: &[2, 1], data: &data };
    request::write(&mut writer, &head, &[tensor, TensorRef { name: TensorName::Index(1), ..tensor }], |_| None);
    let request = frame_of(&writer);
    let mails = [
        MailOutcome::Error { code: 3, text: "no" },
        MailOutcome::Json("{}"),
        MailOutcome::Empty,
        MailOutcome::Response { id: "i", parameters: "{}", outputs: &[tensor] },
    ];
    let mails = mails.map(|outcome| {
        let mut writer = Writer::new();
        mail::write(&mut writer, &Mail { call: 1, lease: 2, last: true, outcome }, |_| None);
        frame_of(&writer)
    });
    Fuzzer::new("worker-requests", mails.into_iter().chain([request])).run(check_request);
}

fn check_message(frame: &[u8]) {
    let frame = Bytes::copy_from_slice(frame);
    let store = lent();
    let (read, held) = peak(|| message::read(&frame, &store));
    assert!(held <= BYTES_BESIDE + BYTES_PER_BYTE * frame.len(), "{held} bytes for {}", frame.len());
    match read {
        Ok(message) => {
            let store = Store::default();
            let again = message::read(&encode(&message, &store).into(), &store);
            // As text, because NaN differs from itself.
            assert_eq!(format!("{again:?}"), format!("{:?}", Ok::<_, Malformed>(message)));
        }
        Err(Malformed(expected)) => assert!(!expected.is_empty()),
    }
}

fn check_request(frame: &[u8]) {
    let Ok((reader, data)) = Reader::new(frame) else { return };
    let view = View { data: data as u64, arena_len: ARENA_BYTES };
    let (request, held) = peak(|| request::read(&mut reader.clone(), &view));
    assert!(held <= BYTES_BESIDE + BYTES_PER_BYTE * frame.len(), "{held} bytes for {}", frame.len());
    let mail = mail::read(&mut reader.clone(), &view);
    let inputs = request.map(|request| request.inputs).unwrap_or_default();
    let outputs = match mail.map(|mail| mail.outcome) {
        Ok(ReceivedOutcome::Response { outputs, .. }) => outputs,
        _ => Vec::new(),
    };
    for tensor in inputs.into_iter().chain(outputs) {
        assert!(tensor.offset + tensor.len as u64 <= ARENA_BYTES, "a tensor beside the arena");
        let count = alipes_protocol::shape::element_count(&tensor.shape).expect("a shape that can be counted");
        assert!(tensor.datatype.size().is_none_or(|size| count * size == tensor.len));
    }
}
