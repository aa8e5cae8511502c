//! Fuzzers of the frames of HTTP/2, beside a reader that has all bytes at once.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use alipes_testkit::fuzz::{Choices, Fuzzer, pieces};

use super::frames::{self, Frame, Frames};
use super::{FrameGuard, PREFACE, PingRules};

/// Bytes of an input's end that say how it arrives.
const CHOICES: usize = 16;

/// Most pieces but the last.
const PIECES: usize = 6;

const HEAD_BYTES: usize = 9;

/// Pings at once that a guard here takes.
const STRIKES: u32 = 3;

/// Frames that carry nothing that a guard here takes a second.
const FRAMES_PER_S: u32 = 2;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    [&Frame { length: payload.len(), kind, flags, stream }.head()[..], payload].concat()
}

/// Calls, and what stands between them.
fn seeds() -> Vec<Vec<u8>> {
    let call = [
        frame(frames::HEADERS, 4, 1, &[0x83, 0x86, 0x44]),
        frame(frames::DATA, 0, 1, &[0; 40]),
        frame(frames::DATA, frames::END_STREAM, 1, b""),
    ];
    let rest = [
        frame(frames::SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]),
        frame(frames::SETTINGS, frames::ACK, 0, b""),
        frame(frames::PING, 0, 0, &[7; 8]),
        frame(frames::PRIORITY, 0, 3, &[0; 5]),
        frame(frames::RST_STREAM, 0, 1, &[0, 0, 0, 8]),
        frame(frames::GOAWAY, 0, 0, &[0; 8]),
        frame(frames::WINDOW_UPDATE, 0, 0, &[0, 1, 0, 0]),
        frame(9, 4, 1, b"continued"),
        frame(0xfa, 0xff, 0x7fff_ffff, b"unknown"),
    ];
    let all = [call.concat(), rest.concat()].concat();
    let floods = [frames::PING, frames::RST_STREAM, frames::DATA].map(|kind| frame(kind, 0, 1, b"").repeat(60));
    let wires = [vec![call.concat(), rest.concat(), all], floods.to_vec()].concat();
    wires.into_iter().map(|wire| Choices::seed(&wire, &[0; CHOICES])).collect()
}

#[test]
fn whatever_a_client_sends_its_frames_are_found_in_any_pieces() {
    Fuzzer::new("http2-frames", seeds()).run(check_frames);
}

#[test]
fn whatever_a_client_sends_a_flood_is_one_in_any_pieces() {
    Fuzzer::new("http2-floods", seeds()).run(check_floods);
}

/// The frames whose heads are whole, and whether the last one is.
fn expected(mut wire: &[u8]) -> (Vec<Frame>, bool) {
    let mut found = Vec::new();
    loop {
        let Some((head, rest)) = wire.split_first_chunk::<HEAD_BYTES>() else { return (found, wire.is_empty()) };
        let [a, b, c, kind, flags, stream @ ..] = *head;
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        found.push(Frame { length, kind, flags, stream: u32::from_be_bytes(stream) & 0x7fff_ffff });
        let Some(behind) = rest.get(length..) else { return (found, false) };
        wire = behind;
    }
}

fn check_frames(input: &[u8]) {
    let (wire, mut choices) = Choices::split(input, CHOICES);
    let (mut parser, mut found) = (Frames::after(0), Vec::new());
    for piece in pieces(wire, &mut choices, PIECES) {
        let passed = parser.pass(piece, |frame| {
            found.push(frame);
            ControlFlow::Continue(())
        });
        assert_eq!(passed, piece.len());
    }
    let (expected, whole) = expected(wire);
    assert_eq!((&found, parser.is_between()), (&expected, whole));
    for frame in found {
        let (mut again, mut seen) = (Frames::after(0), None);
        again.pass(&frame.head(), |frame| {
            seen = Some(frame);
            ControlFlow::Continue(())
        });
        assert_eq!(seen, Some(frame));
    }
}

fn guard() -> FrameGuard {
    let rules = PingRules { interval: Duration::from_secs(300), strikes: STRIKES, without_calls: false };
    let mut guard = FrameGuard::new(Arc::default(), FRAMES_PER_S, Some(rules), None);
    guard.received(PREFACE).expect("a preface is no flood");
    guard
}

fn check_floods(input: &[u8]) {
    let (wire, mut choices) = Choices::split(input, CHOICES);
    let clock = alipes_clock::Held::new().enter();
    let mut whole = guard();
    // No input has as many frames as a turn.
    let verdict = whole.received(wire).map(|passed| assert_eq!(passed, wire.len()));
    let (mut cut, mut first) = (guard(), Ok(()));
    for piece in pieces(wire, &mut choices, PIECES) {
        first = first.and(cut.received(piece).map(|passed| assert_eq!(passed, piece.len())));
    }
    assert_eq!(first, verdict, "a flood depends on how the bytes are cut");
    drop(clock);
    let (frames, _) = expected(wire);
    let pings = frames.iter().filter(|frame| frame.kind == frames::PING && frame.flags & frames::ACK == 0).count();
    assert!(pings <= 1 + STRIKES as usize || verdict.is_err(), "{pings} pings at once");
    if let Err(flood) = verdict {
        let goaway = whole.goaway(flood).expect("nothing was sent before");
        let (sent, is_whole) = self::expected(&goaway);
        assert!(is_whole && sent.len() == 1 && sent[0].kind == frames::GOAWAY);
    }
}
