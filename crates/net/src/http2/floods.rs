//! Limits on frames that cost their sender nothing and the receiver something.
//!
//! The HTTP/2 library answers each of them as it must and bounds what it holds, but does not bound their number.
//! Source: CVE-2023-44487 (calls opened and reset at once), CVE-2025-8671 (calls that the server is made to reset),
//! CVE-2019-9512 to 9518 (pings, settings, empty frames), and gRPC's rules for pings.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::{Context, Poll};

use alipes_protocol::limits::{HTTP2_FRAMES_PER_QUANTUM, HTTP2_FRAMES_PER_SMALL_QUANTUM};
use bytes::{BufMut, Bytes, BytesMut};

use super::debtors::Grant;
use super::frame_account::{Flood, FrameAccount};
use super::frames::{self, Frame, Frames};
use super::pings::{PingRules, Pings};
use super::{PREFACE, debtors};
use crate::connection::Activity;
use crate::probation::{Hold, Origin};

/// `ENHANCE_YOUR_CALM`. Source: RFC 9113, section 7.
const CALM: u32 = 0xb;

/// Checks the frames of one connection against the limits.
pub struct FrameGuard {
    incoming: Frames,
    outgoing: Frames,
    activity: Arc<Activity>,
    pings: Option<Pings>,
    account: FrameAccount,
    quantum: Quantum,
}

/// The frames that a connection may bring in one turn: a few bytes of frames without content can keep a thread busy for
/// a second.
struct Quantum {
    turn: u32,
    left: u32,
    wait: Wait,
    grant: Grant,
}

/// What a connection that has used up its quantum waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Nothing,
    /// Its next turn, which comes when others had theirs.
    Turn,
    /// Its turn among those that owe frames.
    Grant,
}

impl FrameGuard {
    /// A guard that allows `frames_per_s` frames that nothing pays for, and pings as the rules say.
    pub fn new(
        activity: Arc<Activity>,
        frames_per_s: u32,
        rules: Option<PingRules>,
        origin: Option<Origin>,
    ) -> FrameGuard {
        let turn = activity.turn();
        let quantum = Quantum { turn, left: HTTP2_FRAMES_PER_QUANTUM, wait: Wait::Nothing, grant: Grant::default() };
        FrameGuard {
            incoming: Frames::after(PREFACE.len()),
            outgoing: Frames::after(0),
            activity,
            pings: rules.map(Pings::new),
            account: FrameAccount::new(frames_per_s, origin),
            quantum,
        }
    }

    /// Checks received bytes. Returns how many of them the connection may have in this turn.
    ///
    /// # Errors
    ///
    /// The client exceeds a limit.
    #[inline]
    pub fn received(&mut self, bytes: &[u8]) -> Result<usize, Flood> {
        let FrameGuard { incoming, activity, pings, account, quantum, .. } = self;
        let mut too_many_pings = false;
        let passed = incoming.pass(bytes, |frame| {
            account.receive(&frame, quantum.turn);
            if frame.kind == frames::PING
                && !frame.has(frames::ACK)
                && let Some(pings) = pings
            {
                too_many_pings |= pings.is_too_many(alipes_clock::now(), activity.sample().is_busy());
            }
            let most = if account.is_trusted() { u32::MAX } else { HTTP2_FRAMES_PER_SMALL_QUANTUM };
            quantum.left = quantum.left.saturating_sub(1).min(most);
            if quantum.left > 0 && account.flood().is_none() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        match account.flood() {
            _ if too_many_pings => Err(Flood::Pings),
            None => Ok(passed),
            Some(flood) => Err(flood),
        }
    }

    /// Ready while the connection has something left of its quantum. One that has used it up is woken for its next
    /// turn, after others had theirs.
    #[inline]
    pub fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.quantum.turn != self.activity.turn() {
            self.begin_turn();
        }
        if self.quantum.left > 0 {
            return Poll::Ready(());
        }
        if self.quantum.wait == Wait::Nothing {
            if self.account.is_trusted_by_now() {
                self.quantum.wait = Wait::Turn;
                cx.waker().wake_by_ref();
            } else {
                self.quantum.wait = Wait::Grant;
                debtors::wait_for_turn(&self.quantum.grant, cx.waker());
            }
        }
        Poll::Pending
    }

    /// A connection that owes little has a quantum in each turn; any other has a small one when it is granted.
    fn begin_turn(&mut self) {
        let Quantum { turn, left, wait, grant } = &mut self.quantum;
        *turn = self.activity.turn();
        if self.account.is_trusted_by_now() {
            (*left, *wait) = (HTTP2_FRAMES_PER_QUANTUM, Wait::Nothing);
        } else if *wait == Wait::Turn || (*wait == Wait::Grant && grant.take()) {
            (*left, *wait) = (HTTP2_FRAMES_PER_SMALL_QUANTUM, Wait::Nothing);
        } else {
            *left = (*left).min(HTTP2_FRAMES_PER_SMALL_QUANTUM);
        }
    }

    /// Observes sent bytes.
    #[inline]
    pub fn sent(&mut self, bytes: &[u8]) {
        let FrameGuard { outgoing, pings, account, .. } = self;
        outgoing.pass(bytes, |frame| {
            if let (frames::DATA | frames::HEADERS, Some(pings)) = (frame.kind, pings.as_mut()) {
                pings.reset();
            }
            account.send(&frame);
            ControlFlow::Continue(())
        });
    }

    /// The `GOAWAY` frame that names the flood; none in the middle of another frame.
    pub fn goaway(&self, flood: Flood) -> Option<Bytes> {
        let text = flood.text().as_bytes();
        let frame = Frame { length: 8 + text.len(), kind: frames::GOAWAY, flags: 0, stream: 0 };
        self.outgoing.is_between().then(|| {
            let mut bytes = BytesMut::new();
            bytes.put_slice(&frame.head());
            bytes.put_u32(self.account.last_stream());
            bytes.put_u32(CALM);
            bytes.put_slice(text);
            bytes.freeze()
        })
    }

    /// Puts the address of a flooding client on probation, and holds its connection, where there is room to hold it.
    /// Pings that come too often are a setting of the client, and their connection is closed at once.
    pub fn penalise(&self, flood: Flood) -> Option<Hold> {
        let origin = self.account.origin().filter(|_| flood != Flood::Pings)?;
        origin.penalise(flood.text())
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use alipes_clock::{Entered, Held};
    use alipes_protocol::limits::{HTTP2_CONTROL_BURST_SECONDS, HTTP2_FRAMES_ON_TRUST};

    use super::*;

    /// Of a connection to which time, and with it further frames, comes only when a test says so.
    fn guard(frames_per_s: u32) -> (FrameGuard, Arc<Activity>, Entered) {
        let entered = Held::new().enter();
        let activity = Arc::new(Activity::default());
        let mut guard = FrameGuard::new(Arc::clone(&activity), frames_per_s, None, None);
        guard.received(PREFACE).unwrap();
        (guard, activity, entered)
    }

    fn settings(count: u32) -> Vec<u8> {
        Frame { length: 0, kind: frames::SETTINGS, flags: 0, stream: 0 }.head().repeat(count as usize)
    }

    /// How many frames of a flood a connection may have in this turn.
    fn frames_in_a_turn(guard: &mut FrameGuard, flood: &[u8]) -> u32 {
        let mut frames = 0;
        while guard.poll_turn(&mut Context::from_waker(Waker::noop())).is_ready() {
            frames += guard.received(flood).unwrap() as u32 / 9;
        }
        frames
    }

    #[test]
    fn a_connection_has_its_quantum_once_in_a_turn() {
        let (mut guard, activity, _time) = guard(0);
        let flood = settings(2 * HTTP2_FRAMES_PER_QUANTUM);
        for _ in 0..3 {
            assert_eq!(frames_in_a_turn(&mut guard, &flood), HTTP2_FRAMES_PER_QUANTUM);
            assert_eq!(frames_in_a_turn(&mut guard, &flood), 0, "it stays used up until the next turn");
            activity.begin_turn();
        }
    }

    #[tokio::test]
    async fn a_connection_in_debt_has_a_small_quantum_when_it_is_granted() {
        let (mut guard, activity, _time) = guard(1000);
        let flood = settings(HTTP2_FRAMES_PER_QUANTUM);
        // Until it is in debt, and a small quantum.
        let first = HTTP2_FRAMES_ON_TRUST + 1 + HTTP2_FRAMES_PER_SMALL_QUANTUM;
        assert_eq!(frames_in_a_turn(&mut guard, &flood), first);
        for _ in 0..3 {
            // Woken for another reason, such as an answer to send.
            activity.begin_turn();
            assert_eq!(frames_in_a_turn(&mut guard, &flood), 0);
            guard.quantum.grant.set();
            activity.begin_turn();
            assert_eq!(frames_in_a_turn(&mut guard, &flood), HTTP2_FRAMES_PER_SMALL_QUANTUM);
        }
    }

    #[tokio::test]
    async fn a_connection_that_comes_into_debt_while_it_waits_for_its_turn_has_it() {
        let (mut guard, activity, _time) = guard(1000);
        let heads = Frame { length: 0, kind: frames::HEADERS, flags: 0, stream: 1 };
        let calls: Vec<u8> =
            (0..HTTP2_FRAMES_PER_QUANTUM).flat_map(|number| Frame { stream: 2 * number + 1, ..heads }.head()).collect();
        assert_eq!(frames_in_a_turn(&mut guard, &calls), HTTP2_FRAMES_PER_QUANTUM);
        // The calls are malformed.
        for number in 0..HTTP2_FRAMES_PER_QUANTUM {
            guard.sent(&Frame { kind: frames::RST_STREAM, stream: 2 * number + 1, ..heads }.head());
        }
        activity.begin_turn();
        assert_eq!(frames_in_a_turn(&mut guard, &settings(100)), HTTP2_FRAMES_PER_SMALL_QUANTUM);
    }

    #[test]
    fn goaway_is_sent_between_two_frames_and_not_within_one() {
        let (mut guard, _, _time) = guard(1);
        assert_eq!(guard.received(&settings(3 * HTTP2_CONTROL_BURST_SECONDS)), Err(Flood::Control));
        assert_eq!(guard.goaway(Flood::Control).unwrap()[3], frames::GOAWAY);
        guard.sent(&[0, 0, 5, 0]);
        assert_eq!(guard.goaway(Flood::Control), None);
    }
}
