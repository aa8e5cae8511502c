//! A fuzzer of the framing: whatever the pieces, the messages are those of a reader that has all bytes at once.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use alipes_testkit::corpus;
use alipes_testkit::fuzz::{Choices, Fuzzer, pieces};
use alipes_testkit::memory::{CountedAllocator, peak};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use std::io::Write;

use super::super::layout::Plain;
use super::*;

#[global_allocator]
static ALLOCATOR: CountedAllocator = CountedAllocator;

/// Bytes of an input's end that say how it arrives.
const CHOICES: usize = 16;

/// Most pieces but the last.
const PIECES: usize = 6;

const LONGEST_MESSAGE: usize = 3_000;
const LONGEST_EXPANDED: usize = 6_000;

/// What a call may hold beside a few times what has arrived of it: a window and a table of inflate.
const HELD_BESIDE: usize = 96 << 10;

#[test]
fn whatever_arrives_the_messages_are_the_same_in_any_pieces() {
    let framed = |flag: u8, message: &[u8]| [&[flag], &(message.len() as u32).to_be_bytes()[..], message].concat();
    let requests = corpus::grpc_requests();
    let mut wires: Vec<Vec<u8>> = requests.iter().map(|message| framed(0, message)).collect();
    wires.push(requests.iter().take(5).flat_map(|message| framed(0, message)).collect());
    for message in [&[7; 2_000][..], b"short", &requests[0]] {
        let (mut gzip, mut deflate) =
            (GzEncoder::new(Vec::new(), Compression::new(6)), ZlibEncoder::new(Vec::new(), Compression::new(6)));
        gzip.write_all(message).expect("memory");
        deflate.write_all(message).expect("memory");
        wires.push(framed(1, &gzip.finish().expect("memory")));
        wires.push(framed(1, &deflate.finish().expect("memory")));
    }
    let seeds: Vec<Vec<u8>> = (0..3)
        .flat_map(|encoding| wires.iter().map(move |wire| Choices::seed(wire, &[&[encoding], &[0; 15][..]].concat())))
        .collect();
    Fuzzer::new("grpc-framing", seeds).words(["\x1f\u{8b}\x08", "\x78\u{9c}"]).run(check_call);
}

fn check_call(input: &[u8]) {
    let (wire, mut choices) = Choices::split(input, CHOICES);
    let encoding = choices.pick(&[Encoding::Identity, Encoding::Gzip, Encoding::Deflate]);
    let receiving = Receiving { encoding, max_bytes: LONGEST_MESSAGE, max_expanded_bytes: LONGEST_EXPANDED };
    let aligned_at = choices.below(200);
    let pieces = pieces(wire, &mut choices, PIECES);
    let budget = Budget::new(1 << 30);
    let (arrived, held) = peak(|| arrive(&pieces, aligned_at, receiving, &budget));
    assert_eq!(arrived, expected(wire, receiving));
    assert_eq!(budget.used(), 0);
    assert!(held <= HELD_BESIDE + 8 * wire.len() + 4 * LONGEST_EXPANDED, "{held} bytes for {}", wire.len());
    check_requests(&pieces, receiving);
}

/// What came of a call: its messages, and why there are no more, or whether one had begun.
#[derive(Debug, PartialEq)]
struct Arrived {
    messages: Vec<(bool, Bytes)>,
    end: Result<bool, String>,
}

struct PlacedAt(usize, Arc<Budget>);

impl Layout for PlacedAt {
    fn of(&self, _: &[u8]) -> Place {
        Place::Heap { aligned_at: self.0 }
    }

    fn budget(&self) -> &Arc<Budget> {
        &self.1
    }
}

fn arrive(pieces: &[&[u8]], aligned_at: usize, receiving: Receiving, budget: &Arc<Budget>) -> Arrived {
    let mut messages = Messages::new(PlacedAt(aligned_at, Arc::clone(budget)), receiving);
    let mut arrived = Vec::new();
    for piece in pieces {
        messages.push(Bytes::copy_from_slice(piece));
        loop {
            match messages.next() {
                Ok(Some(message)) => arrived.push((message.compressed, message.bytes.clone())),
                Ok(None) => break,
                Err(error) => return Arrived { messages: arrived, end: Err(error.message) },
            }
        }
    }
    Arrived { messages: arrived, end: Ok(messages.is_between()) }
}

/// What comes of a call for a reader that has all bytes at once.
fn expected(mut wire: &[u8], receiving: Receiving) -> Arrived {
    let mut messages = Vec::new();
    let end = loop {
        let Some((prefix, rest)) = wire.split_first_chunk::<PREFIX_BYTES>() else { break Ok(wire.is_empty()) };
        let [flag, length @ ..] = *prefix;
        let length = u32::from_be_bytes(length) as usize;
        if flag > 1 {
            break Err(format!("a message begins with {flag}, expected 0 or 1"));
        }
        if flag == 1 && receiving.encoding == Encoding::Identity {
            break Err("a compressed request message comes without grpc-encoding".to_owned());
        }
        if length > receiving.max_bytes {
            let most = receiving.max_bytes;
            break Err(format!("request message of {length} bytes exceeds the limit of {most} bytes"));
        }
        let Some((message, behind)) = rest.split_at_checked(length) else { break Ok(false) };
        messages.push((flag == 1, Bytes::copy_from_slice(message)));
        wire = behind;
    };
    Arrived { messages, end }
}

/// Each message becomes a request or an error, within its limits, and gives back what it was charged.
fn check_requests(pieces: &[&[u8]], receiving: Receiving) {
    let (budget, regions) = (Budget::new(64 << 10), Arc::new(Regions::new(4)));
    let mut messages = Messages::new(Plain(Arc::clone(&budget)), receiving);
    'call: for piece in pieces {
        messages.push(Bytes::copy_from_slice(piece));
        while let Ok(next) = messages.next() {
            let Some(message) = next else { continue 'call };
            let _ = check_message(message, receiving, &regions, &budget);
        }
        break;
    }
    drop(messages);
    assert_eq!(budget.used(), 0);
}

fn check_message(
    message: Message,
    receiving: Receiving,
    regions: &Arc<Regions>,
    budget: &Arc<Budget>,
) -> Result<(), InferError> {
    let was_compressed = message.is_compressed();
    let expanding = pin!(message.expanded(receiving, Arc::clone(budget)));
    let Poll::Ready(message) = expanding.poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("a short message is expanded on the spot");
    };
    let message = message?;
    assert!(!was_compressed || message.bytes.len() <= receiving.max_expanded_bytes);
    let (request, _held) = parse_now(message, budget)?.decode(regions, budget, TritonRelease::default())?;
    let held: usize = request.inputs.iter().map(|input| input.data.len()).sum();
    assert!(held as u64 <= budget.used() + alipes_protocol::limits::BUDGET_FREE_BYTES, "{held} bytes are not charged");
    Ok(())
}
