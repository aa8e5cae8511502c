//! A server end beside a worker that writes whatever it likes wherever it can.

mod fuzz;

use std::collections::VecDeque;
use std::sync::Arc;

use alipes_protocol::{CorrelationId, Datatype};
use bytes::Bytes;
use proptest::prelude::*;

use crate::layout::{ANSWER_ENTRIES, Header, Link};
use crate::memory::SharedMemory;
use crate::*;

/// What decides: bytes that somebody chose, and then a small generator, of which the seed is all that a case needs to
/// be run again.
#[derive(Default)]
struct Dice {
    chosen: VecDeque<u8>,
    seed: u64,
}

impl Dice {
    fn seeded(seed: u64) -> Dice {
        Dice { seed: seed | 1, ..Dice::default() }
    }

    fn roll(&mut self) -> u64 {
        if !self.chosen.is_empty() {
            let count = self.chosen.len().min(8);
            return self.chosen.drain(..count).rev().fold(0, |roll, byte| roll << 8 | u64::from(byte));
        }
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn below(&mut self, end: u64) -> u64 {
        match self.chosen.pop_front() {
            Some(byte) if end <= 256 => u64::from(byte) % end,
            Some(byte) => {
                self.chosen.push_front(byte);
                self.roll() % end
            }
            None => self.roll() % end,
        }
    }

    /// A number of the kind that finds mistakes.
    fn odd(&mut self, usual: u64) -> u64 {
        match self.below(6) {
            0 => 0,
            1 => u64::MAX - self.below(100),
            2 => usual.wrapping_add(self.below(5)).wrapping_sub(2),
            3 => 1 << self.below(64),
            4 => self.below(usual.max(1)),
            _ => self.roll(),
        }
    }
}

struct Case {
    arena: Arc<RequestArena>,
    server: ServerEnd,
    worker: WorkerEnd,
    /// The link as the worker sees it.
    link: Link,
    dice: Dice,
    placed: Placed,
    ticket: u64,
    received: Vec<Message>,
}

const SLOTS: u32 = 8;
const RESPONSE_BYTES: u64 = 4 << 20;

impl Case {
    fn new(dice: Dice) -> Case {
        let arena = RequestArena::create(1 << 20).unwrap();
        let server = ServerEnd::create(Geometry { slots: SLOTS, response_bytes: RESPONSE_BYTES }).unwrap();
        let clone = || server.link_fd().try_clone_to_owned().unwrap();
        let requests = arena.fd().try_clone_to_owned().unwrap();
        let worker = WorkerEnd::open(clone(), requests, server.doorbell_fd().try_clone_to_owned().unwrap()).unwrap();
        let link = Link::open(SharedMemory::open(clone()).unwrap()).unwrap();
        let head = RequestHead {
            id: "",
            correlation_id: &CorrelationId::Number(0),
            flags: 0,
            timeout_us: 0,
            priority: 0,
            parameters: "",
            outputs: &[],
            trace: None,
        };
        let placed = arena.write_request(&head, &[]).unwrap();
        Case { arena, server, worker, link, dice, placed, ticket: 0, received: Vec::new() }
    }

    /// The worker behaves for a while: everything it says, with tensors of every kind.
    fn behave(&mut self) {
        let frame = (self.placed.offset, self.placed.len);
        let first = self.ticket + 1;
        let entries: Vec<Entry> = (0..SLOTS)
            .map(|slot| Entry { slot, ticket: first + u64::from(slot), rows: 1, key: 0, group: 0, frame })
            .collect();
        self.ticket += u64::from(SLOTS);
        self.server.publish(&entries).unwrap();
        let mut requests = Vec::new();
        self.worker.claim(3, &mut requests);
        let large = vec![1u8; 70_000];
        let mut words = 69_996u32.to_le_bytes().to_vec();
        words.resize(70_000, b'w');
        let tensor = |datatype, shape: &[i64], data| OutTensor {
            name: TensorName::Index(0),
            datatype,
            shape: shape.iter().copied().collect(),
            data,
        };
        let outputs = || {
            vec![
                tensor(Datatype::Uint8, &[70_000], OutData::Bytes(&large)),
                tensor(Datatype::Bytes, &[1], OutData::Bytes(&words)),
                tensor(Datatype::Fp32, &[2], OutData::Bytes(&[1, 2, 3, 4, 5, 6, 7, 8])),
                tensor(Datatype::Bytes, &[1], OutData::Input { offset: frame.0, len: 4 }),
            ]
        };
        let parameters = [("p".to_owned(), alipes_protocol::Parameter::String("v".into()))];
        let answer = |request: &Request| {
            let outcome = OutOutcome::Response { outputs: outputs(), parameters: &parameters };
            OutAnswer { slot: request.slot, ticket: request.ticket, last: true, released: true, outcome }
        };
        let answers: Vec<OutAnswer<'_>> = requests.iter().map(answer).collect();
        let (now, rest) = answers.split_first().unwrap();
        let tickets: Vec<(u32, u64)> = requests.iter().map(|request| (request.slot, request.ticket)).collect();
        self.worker.send(&OutMessage::Answer(now)).unwrap();
        let times = Some(Times::default());
        self.worker.send(&OutMessage::Answers { times, tickets: &tickets, answers: rest }).unwrap();
        self.worker.send(&OutMessage::Log(&LogLine { level: 1, file: "f".into(), line: 1, text: "t".into() })).unwrap();
        let call = OutCall { id: 1, parent: 2, kind: OutCallKind::Control { name: "n", json: "{}" } };
        self.worker.send(&OutMessage::Call(&call)).unwrap();
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        let end = (offset + bytes.len() as u64).min(self.link.memory.len() as u64);
        let len = end.saturating_sub(offset) as usize;
        let target = self.link.memory.at(offset, len).unwrap();
        // SAFETY: in the mapping; this is the worker's view, and a hostile worker writes like this.
        unsafe { target.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), len) };
    }

    fn word(&self, offset: u64) -> u64 {
        let mut bytes = [0; 8];
        // SAFETY: in the mapping, as above.
        unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(self.link.memory.at(offset, 8).unwrap().as_ptr(), 8) };
        u64::from_le_bytes(bytes)
    }

    /// The worker does one thing that it must not.
    fn misbehave(&mut self) {
        let layout = self.link.layout;
        let slot = layout.answers + self.dice.below(ANSWER_ENTRIES.min(12)) * 16;
        match self.dice.below(6) {
            // Positions, bells and flags.
            0 => {
                let offset = self.dice.below(size_of::<Header>() as u64 / 4) * 4;
                let value = self.dice.odd(8);
                self.write(offset, &value.to_le_bytes());
            }
            // The slot table and the rings.
            1 => {
                let offset = layout.slots + self.dice.below(layout.responses - layout.slots);
                let value = self.dice.roll();
                self.write(offset, &value.to_le_bytes());
            }
            // Where a message lies.
            2 => {
                let value = self.dice.odd(RESPONSE_BYTES);
                let field = self.dice.below(2) * 8;
                self.write(slot + field, &value.to_le_bytes());
            }
            // What it says: a number in it, or a single bit.
            _ => {
                let frame = layout.responses + self.word(slot) % RESPONSE_BYTES;
                let at = frame + self.dice.below(200);
                let value = self.dice.odd(70_000).to_le_bytes();
                let len = [1, 2, 4, 8][self.dice.below(4) as usize];
                self.write(at.min(self.link.memory.len() as u64 - 8), &value[..len]);
            }
        }
    }

    /// The server does what a server does, and looks at all it gets.
    fn serve(&mut self) {
        let handle = self.server.handle();
        for slot in 0..SLOTS {
            let ticket = self.ticket - self.dice.below(u64::from(SLOTS));
            let _ = (self.server.is_claimed(slot, ticket), self.server.revoke(slot, ticket));
            handle.cancel(slot, ticket);
            handle.caller_left(slot, ticket);
            handle.consumed(slot, ticket, 1, 1);
        }
        self.server.wake();
        let _ = self.server.post(&self.placed);
        let _ = self.server.arm();
        for _ in 0..20 {
            match self.server.receive() {
                Ok(Some(message)) => self.look(message),
                Ok(None) => break,
                Err(violation) => {
                    assert!(!violation.text.is_empty());
                    break;
                }
            }
        }
    }

    fn look(&mut self, message: Message) {
        let answers = match &message {
            Message::Answer(answer) => std::slice::from_ref(answer),
            Message::Answers { answers, .. } => answers,
            _ => &[],
        };
        let mut sum = 0u64;
        for answer in answers {
            if let Outcome::Response { outputs, .. } = &answer.outcome {
                for bytes in outputs.iter().filter_map(|output| output.resolve(&self.placed).ok()) {
                    // A byte of each cache line, and the last.
                    let seen = bytes.iter().step_by(64).chain(bytes.last());
                    sum += seen.map(|&byte| u64::from(byte)).sum::<u64>();
                }
            }
        }
        std::hint::black_box(sum);
        if self.dice.below(2) == 0 {
            self.received.push(message);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_a_worker_writes_is_a_message_or_a_violation(seed in any::<u64>(), steps in 1..6) {
        let mut case = Case::new(Dice::seeded(seed));
        case.behave();
        for _ in 0..steps {
            case.misbehave();
            case.serve();
        }
        let Case { server, worker, link, received, arena, .. } = case;
        drop((server, worker, link));
        drop((received, arena));
    }
}

#[test]
fn endless_returns_of_slots_are_a_violation() {
    let mut case = Case::new(Dice::seeded(1));
    case.behave();
    let slot = case.link.layout.answers;
    let (offset, len) = (case.word(slot), case.word(slot + 8));
    // A message that lends nothing, again and again, while the worker never takes its slots back.
    case.write(case.link.layout.responses + offset + 4, &[3]);
    case.write(case.link.layout.responses + offset, &5u32.to_le_bytes());
    let ends = std::mem::offset_of!(Header, answers) as u64;
    let mut outcome = Ok(None);
    for round in 0..20_000u64 {
        case.write(slot + round % ANSWER_ENTRIES * 16, &offset.to_le_bytes());
        case.write(slot + round % ANSWER_ENTRIES * 16 + 8, &len.to_le_bytes());
        case.write(ends, &(round + 1).to_le_bytes());
        outcome = case.server.receive();
        if outcome.is_err() {
            break;
        }
    }
    assert!(outcome.unwrap_err().text.contains("more slots"));
}

#[test]
fn what_lies_beside_the_response_arena_is_never_lent() {
    let mut case = Case::new(Dice::seeded(1));
    let slot = case.link.layout.answers;
    let ends = std::mem::offset_of!(Header, answers) as u64;
    for (offset, len) in [(RESPONSE_BYTES, 4), (RESPONSE_BYTES - 4, 8), (u64::MAX - 2, 4), (0, u64::MAX), (0, 1 << 31)]
    {
        let mut case = Case::new(Dice::seeded(2));
        case.write(slot, &u64::to_le_bytes(offset));
        case.write(slot + 8, &u64::to_le_bytes(len));
        case.write(ends, &1u64.to_le_bytes());
        let violation = case.server.receive().unwrap_err();
        assert!(violation.text.contains("a message of"), "{violation}");
        assert!(case.server.arm(), "there is nothing more to receive, though the message lies there");
    }
    assert_eq!(case.server.receive(), Ok(None));
    let _: Option<Bytes> = case.placed.slice(0, 0);
}
