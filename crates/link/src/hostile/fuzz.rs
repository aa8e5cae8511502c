//! Fuzzers of both ends, beside a process that writes into their memory: an input says what it writes, and where.

use alipes_testkit::fuzz::Fuzzer;

use super::*;

/// Most things that a worker does wrong in one case.
const MOST_STEPS: usize = 12;

/// Bytes of the request arena.
const ARENA_BYTES: u64 = 1 << 20;

/// Inputs where nobody searches: each makes a link of its own.
const INPUTS: u32 = 100;

/// Each kind of misbehaviour, with numbers of all sizes.
fn seeds() -> Vec<Vec<u8>> {
    (0..6u8).flat_map(|kind| [0, 1, 4, 0x7f, 0xff].map(|byte| [&[kind], &[byte; 40][..]].concat())).collect()
}

#[test]
fn whatever_a_worker_writes_the_server_reads_within_its_memory() {
    Fuzzer::new("worker-memory", seeds()).inputs(INPUTS).run(check_server);
}

#[test]
fn whatever_a_model_writes_a_worker_reads_within_its_memory() {
    Fuzzer::new("worker-arena", seeds()).inputs(INPUTS).run(check_worker);
}

fn check_server(input: &[u8]) {
    let mut case = Case::new(Dice { chosen: input.iter().copied().collect(), seed: 1 });
    case.behave();
    for _ in 0..MOST_STEPS {
        case.misbehave();
        case.serve();
        if case.dice.chosen.is_empty() {
            break;
        }
    }
}

/// Another instance of the model writes over requests that this one is about to claim.
fn check_worker(input: &[u8]) {
    let mut case = Case::new(Dice { chosen: input.iter().copied().collect(), seed: 1 });
    let (damaged, sound) = (place(&case.arena, 3), place(&case.arena, 0));
    // With the last of them sound, there is a request to be claimed.
    let entry = |slot: u32, placed: &Placed| {
        let frame = (placed.offset, placed.len);
        Entry { slot, ticket: u64::from(slot) + 1, rows: 1, key: 0, group: 0, frame }
    };
    let entries = [entry(0, &damaged), entry(1, &damaged), entry(2, &sound)];
    let arena = SharedMemory::open(case.arena.fd().try_clone_to_owned().unwrap()).unwrap();
    while !case.dice.chosen.is_empty() {
        let length = [1, 2, 4, 8][case.dice.below(4) as usize];
        let at = damaged.offset + case.dice.below(u64::from(damaged.len) - length as u64);
        let value = case.dice.odd(ARENA_BYTES).to_le_bytes();
        let target = arena.at(at, length).unwrap();
        // SAFETY: in the mapping; this is what a model may do to the memory of its version.
        unsafe { target.as_ptr().copy_from_nonoverlapping(value.as_ptr(), length) };
    }
    case.server.publish(&entries).unwrap();
    let mut requests = Vec::new();
    assert_eq!(case.worker.claim(64, &mut requests), Claimed::Requests);
    assert_eq!(requests.last().map(|request| request.slot), Some(2));
    for input in requests.iter().flat_map(|request| &request.inputs) {
        assert!(input.offset + input.len as u64 <= arena.len() as u64, "an input beside the arena");
    }
    let mut refused = 0;
    while let Some(message) = case.server.receive().expect("an honest worker") {
        assert!(matches!(&message, Message::Answer(answer) if matches!(answer.outcome, Outcome::Error { .. })));
        refused += 1;
    }
    assert_eq!(requests.len() + refused, entries.len());
}

/// A request with so many inputs.
fn place(arena: &Arc<RequestArena>, inputs: usize) -> Placed {
    let head = RequestHead {
        id: "id",
        correlation_id: &CorrelationId::Text("left".to_owned()),
        flags: 1,
        timeout_us: 2,
        priority: 3,
        parameters: "{}",
        outputs: &[0, 1],
        trace: Some("{}"),
    };
    let data = Bytes::from_static(&[1, 2, 3, 4, 5, 6, 7, 8]);
    let tensor = TensorRef { name: TensorName::Name("X"), datatype: Datatype::Fp32, shape: &[2], data: &data };
    arena.write_request(&head, &vec![tensor; inputs]).unwrap()
}
