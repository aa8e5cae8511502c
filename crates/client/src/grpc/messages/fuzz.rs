//! A fuzzer of the framing on the client's side: whatever the pieces, the messages are those of all bytes at once.

use alipes_protocol::codec::proto::first_raw_output;
use alipes_testkit::corpus;
use alipes_testkit::fuzz::{Choices, Fuzzer, pieces};

use super::*;

/// Bytes of an input's end that say how it arrives.
const CHOICES: usize = 16;

/// Most pieces but the last.
const PIECES: usize = 6;

#[test]
fn whatever_a_server_sends_its_messages_are_the_same_in_any_pieces() {
    let framed = |message: &[u8]| [&[0], &(message.len() as u32).to_be_bytes()[..], message].concat();
    let single: Vec<Vec<u8>> = corpus::grpc_responses().iter().map(|message| framed(message)).collect();
    let all = single.concat();
    let seeds = single.into_iter().chain([all]).map(|wire| Choices::seed(&wire, &[0; CHOICES]));
    Fuzzer::new("client-framing", seeds).run(check);
}

/// The messages, and whether something is left or wrong behind them.
type Arrived = (Vec<Bytes>, Result<bool, String>);

fn check(input: &[u8]) {
    let (wire, mut choices) = Choices::split(input, CHOICES);
    let mut messages = if choices.flip() { Messages::with_tensors(first_raw_output) } else { Messages::default() };
    let arrived = arrive(&pieces(wire, &mut choices, PIECES), &mut messages);
    assert_eq!(arrived, expected(wire));
}

fn arrive(pieces: &[&[u8]], messages: &mut Messages) -> Arrived {
    let mut arrived = Vec::new();
    for piece in pieces {
        messages.push(Bytes::copy_from_slice(piece));
        loop {
            match messages.next() {
                Ok(Some(message)) => arrived.push(message),
                Ok(None) => break,
                Err(error) => return (arrived, Err(error.message)),
            }
        }
    }
    (arrived, Ok(messages.is_begun()))
}

fn expected(mut wire: &[u8]) -> Arrived {
    let mut messages = Vec::new();
    let end = loop {
        let length = match announced(wire) {
            Err(error) => break Err(error.message),
            Ok(None) => break Ok(!wire.is_empty()),
            Ok(Some(length)) => length,
        };
        let Some((message, behind)) = wire[PREFIX_BYTES..].split_at_checked(length) else { break Ok(true) };
        messages.push(Bytes::copy_from_slice(message));
        wire = behind;
    };
    (messages, end)
}
