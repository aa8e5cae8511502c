//! Frames that cost their sender nothing and the receiver something: counted, and no more than so many taken.
//!
//! The HTTP/2 library answers each of them as it must and bounds what it keeps; how many of them are too many it does
//! not say. Source: CVE-2023-44487 (calls opened and reset at once), CVE-2019-9512 to 9518 (pings, settings, empty
//! frames), and gRPC's rules for pings.

use std::sync::Arc;
use std::time::{Duration, Instant};

use alipes_protocol::limits::{
    GRPC_IDLE_PING_TIME, HTTP2_CONTROL_BURST_SECONDS, HTTP2_DATA_CREDIT_BYTES, HTTP2_FRAMES_IN_TURN,
    HTTP2_SMALL_DATA_BYTES,
};
use bytes::{BufMut, Bytes, BytesMut};

use super::PREFACE;
use super::frames::{self, Frame, Frames};
use crate::net::connection::Pulse;

/// `ENHANCE_YOUR_CALM`. Source: RFC 9113, section 7.
const CALM: u32 = 0xb;

/// What a client does too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flood {
    /// It pings.
    Pings,
    /// It sends frames that carry nothing.
    Control,
}

impl Flood {
    /// What the client is told; clients of gRPC know the first and ping less often afterwards.
    fn text(self) -> &'static [u8] {
        match self {
            Flood::Pings => b"too_many_pings",
            Flood::Control => b"too_many_control_frames",
        }
    }
}

/// How often a client may ping. Source: gRPC's `grpc.http2.min_ping_interval_without_data_ms` and what belongs to it.
#[derive(Clone, Copy, Debug)]
pub struct PingRules {
    /// Time between two pings while nothing is sent to the client.
    pub interval: Duration,
    /// Pings that may come earlier; 0 takes any number.
    pub strikes: u32,
    /// A client without calls may ping as often.
    pub without_calls: bool,
}

/// Looks at the frames of one connection.
pub struct Guard {
    incoming: Frames,
    outgoing: Frames,
    pulse: Arc<Pulse>,
    pings: Option<Pings>,
    budget: Option<Budget>,
    crumbs: Crumbs,
    last_stream: u32,
    /// Frames that came since the connection last let others have their turn.
    in_turn: u32,
}

impl Guard {
    /// A guard for a connection on which `frames_per_s` empty frames may come, and pings as the rules say.
    pub fn new(pulse: Arc<Pulse>, frames_per_s: u32, rules: Option<PingRules>) -> Guard {
        Guard {
            incoming: Frames::after(PREFACE.len()),
            outgoing: Frames::after(0),
            pulse,
            pings: rules.map(|rules| Pings { rules, last: None, strikes: 0 }),
            budget: (frames_per_s > 0).then(|| Budget::new(frames_per_s, Instant::now())),
            crumbs: Crumbs::default(),
            last_stream: 0,
            in_turn: 0,
        }
    }

    /// Looks at what the client sent.
    ///
    /// # Errors
    ///
    /// It sent too much of what it need not send.
    #[inline]
    pub fn received(&mut self, bytes: &[u8]) -> Result<(), Flood> {
        let Guard { incoming, pulse, pings, budget, crumbs, last_stream, in_turn, .. } = self;
        let mut flood = None;
        incoming.pass(bytes, |frame| {
            *in_turn += 1;
            if frame.kind == frames::HEADERS {
                *last_stream = frame.stream;
            } else if brings_nothing(&frame, crumbs) {
                flood = flood.or_else(|| judge(&frame, pulse, pings.as_mut(), budget.as_mut()));
            }
        });
        flood.map_or(Ok(()), Err)
    }

    /// Whether the connection has had its turn, and others should have theirs: a few bytes of frames without content can
    /// keep a thread busy for a second. A new turn begins.
    #[inline]
    pub fn has_had_its_turn(&mut self) -> bool {
        let over = self.in_turn >= HTTP2_FRAMES_IN_TURN;
        self.in_turn = if over { 0 } else { self.in_turn };
        over
    }

    /// Begins a new turn: there was nothing more to read.
    #[inline]
    pub fn end_turn(&mut self) {
        self.in_turn = 0;
    }

    /// Looks at what the client is sent.
    #[inline]
    pub fn sent(&mut self, bytes: &[u8]) {
        let Guard { outgoing, pings, .. } = self;
        outgoing.pass(bytes, |frame| {
            if let (frames::DATA | frames::HEADERS, Some(pings)) = (frame.kind, pings.as_mut()) {
                pings.forgive();
            }
        });
    }

    /// The frame that tells the client why it is left; none in the middle of another frame.
    pub fn goodbye(&self, flood: Flood) -> Option<Bytes> {
        let text = flood.text();
        let frame = Frame { length: 8 + text.len(), kind: frames::GOAWAY, flags: 0, stream: 0 };
        self.outgoing.is_between().then(|| {
            let mut bytes = BytesMut::new();
            bytes.put_slice(&frame.head());
            bytes.put_u32(self.last_stream);
            bytes.put_u32(CALM);
            bytes.put_slice(text);
            bytes.freeze()
        })
    }
}

/// Whether a frame brings nothing that a request is made of, or next to nothing.
#[inline]
fn brings_nothing(frame: &Frame, crumbs: &mut Crumbs) -> bool {
    match frame.kind {
        frames::PRIORITY | frames::RST_STREAM => true,
        frames::SETTINGS | frames::PING => frame.flags & frames::ACK == 0,
        frames::DATA => crumbs.count(frame),
        _ => false,
    }
}

#[cold]
fn judge(frame: &Frame, pulse: &Pulse, pings: Option<&mut Pings>, budget: Option<&mut Budget>) -> Option<Flood> {
    if frame.kind == frames::PING
        && let Some(pings) = pings
        && pings.is_too_many(Instant::now(), pulse.sample().is_busy())
    {
        return Some(Flood::Pings);
    }
    budget.is_some_and(|budget| budget.is_spent(Instant::now)).then_some(Flood::Control)
}

/// Data that comes in very small frames.
#[derive(Default)]
struct Crumbs {
    /// Bytes that came in larger frames, and have not made up for small ones yet.
    credit: usize,
}

impl Crumbs {
    /// Whether a frame of data counts as one that brings nothing. The last one of a call does not: there is one a call.
    #[inline]
    fn count(&mut self, frame: &Frame) -> bool {
        if frame.length >= HTTP2_SMALL_DATA_BYTES {
            self.credit = (self.credit + frame.length).min(HTTP2_DATA_CREDIT_BYTES);
            return false;
        }
        if frame.flags & frames::END_STREAM != 0 {
            return false;
        }
        let paid = frame.length > 0 && self.credit >= HTTP2_SMALL_DATA_BYTES;
        self.credit -= if paid { HTTP2_SMALL_DATA_BYTES } else { 0 };
        !paid
    }
}

/// The pings of a client.
struct Pings {
    rules: PingRules,
    last: Option<Instant>,
    strikes: u32,
}

impl Pings {
    fn is_too_many(&mut self, now: Instant, busy: bool) -> bool {
        let interval = if busy || self.rules.without_calls { self.rules.interval } else { GRPC_IDLE_PING_TIME };
        let too_early = self.last.replace(now).is_some_and(|last| now < last + interval);
        self.strikes += u32::from(too_early);
        self.rules.strikes > 0 && self.strikes > self.rules.strikes
    }

    /// Something was sent to the client, which may want to know whether it is still read.
    #[inline]
    fn forgive(&mut self) {
        (self.last, self.strikes) = (None, 0);
    }
}

/// So many frames in so much time; the clock is read once a burst.
struct Budget {
    burst: u32,
    left: u32,
    since: Instant,
}

impl Budget {
    fn new(frames_per_s: u32, now: Instant) -> Budget {
        let burst = frames_per_s.saturating_mul(HTTP2_CONTROL_BURST_SECONDS);
        Budget { burst, left: burst, since: now }
    }

    fn is_spent(&mut self, now: impl Fn() -> Instant) -> bool {
        if self.left > 0 {
            self.left -= 1;
            return false;
        }
        let now = now();
        if now.duration_since(self.since) < Duration::from_secs(HTTP2_CONTROL_BURST_SECONDS.into()) {
            return true;
        }
        (self.left, self.since) = (self.burst - 1, now);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: PingRules = PingRules { interval: Duration::from_secs(300), strikes: 2, without_calls: false };

    fn pings() -> (Pings, Instant) {
        (Pings { rules: RULES, last: None, strikes: 0 }, Instant::now())
    }

    #[test]
    fn the_third_early_ping_is_one_too_many() {
        let (mut pings, begin) = pings();
        let too_many: Vec<bool> =
            (0..4).map(|second| pings.is_too_many(begin + Duration::from_secs(second), true)).collect();
        assert_eq!(too_many, [false, false, false, true]);
    }

    #[test]
    fn a_ping_now_and_then_is_welcome_while_there_are_calls() {
        let (mut pings, begin) = pings();
        assert!((0..9).all(|number| !pings.is_too_many(begin + RULES.interval * number, true)));
        assert!((9..13).any(|number| pings.is_too_many(begin + RULES.interval * number, false)));
    }

    #[test]
    fn whoever_is_sent_something_may_ping_again() {
        let (mut pings, begin) = pings();
        for _ in 0..100 {
            assert!(!pings.is_too_many(begin, true));
            pings.forgive();
        }
    }

    #[test]
    fn a_connection_that_brings_many_frames_lets_others_have_their_turn() {
        let mut guard = Guard::new(Arc::default(), 0, None);
        guard.received(PREFACE).unwrap();
        let head = Frame { length: 0, kind: frames::WINDOW_UPDATE, flags: 0, stream: 1 }.head();
        guard.received(&head.repeat(HTTP2_FRAMES_IN_TURN as usize - 1)).unwrap();
        assert!(!guard.has_had_its_turn());
        guard.received(&head).unwrap();
        assert_eq!([guard.has_had_its_turn(), guard.has_had_its_turn()], [true, false]);
        guard.received(&head.repeat(HTTP2_FRAMES_IN_TURN as usize)).unwrap();
        guard.end_turn();
        assert!(!guard.has_had_its_turn());
    }

    #[test]
    fn data_in_crumbs_is_counted_unless_larger_frames_make_up_for_it() {
        let data = |length, flags| Frame { length, kind: frames::DATA, flags, stream: 1 };
        let mut crumbs = Crumbs::default();
        assert!(crumbs.count(&data(0, 0)) && crumbs.count(&data(1, 0)));
        assert!(crumbs.count(&data(HTTP2_SMALL_DATA_BYTES - 1, 0)));
        assert!(!crumbs.count(&data(HTTP2_SMALL_DATA_BYTES - 1, frames::END_STREAM)));
        // A client that sends the prefix of each message by itself.
        for _ in 0..100_000 {
            assert!(!crumbs.count(&data(HTTP2_SMALL_DATA_BYTES, 0)));
            assert!(!crumbs.count(&data(5, 0)));
        }
        // What was saved up does not last.
        assert!(!crumbs.count(&data(1 << 24, 0)));
        let free = (0..).take_while(|_| !crumbs.count(&data(1, 0))).count();
        assert_eq!(free, HTTP2_DATA_CREDIT_BYTES / HTTP2_SMALL_DATA_BYTES);
    }

    #[test]
    fn a_budget_is_spent_by_a_flood_and_not_by_a_habit() {
        let begin = Instant::now();
        let mut budget = Budget::new(10, begin);
        let spent = (0..1000).position(|_| budget.is_spent(|| begin)).unwrap();
        assert_eq!(spent, 10 * HTTP2_CONTROL_BURST_SECONDS as usize);
        let mut budget = Budget::new(10, begin);
        assert!((0..1000).all(|number| !budget.is_spent(|| begin + Duration::from_millis(100) * number)));
    }

    #[test]
    fn a_flood_is_told_between_two_frames_and_not_within_one() {
        let mut guard = Guard::new(Arc::default(), 1, None);
        guard.received(PREFACE).unwrap();
        let reset = Frame { length: 4, kind: frames::RST_STREAM, flags: 0, stream: 1 };
        let bytes = [&reset.head()[..], &[0; 4]].concat().repeat(HTTP2_CONTROL_BURST_SECONDS as usize + 1);
        assert_eq!(guard.received(&bytes), Err(Flood::Control));
        assert_eq!(guard.goodbye(Flood::Control).unwrap()[3], frames::GOAWAY);
        guard.sent(&[0, 0, 5, 0]);
        assert_eq!(guard.goodbye(Flood::Control), None);
    }
}
