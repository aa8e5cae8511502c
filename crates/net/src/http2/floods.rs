//! Limits on frames that cost their sender nothing and the receiver something.
//!
//! The HTTP/2 library answers each of them as it must and bounds what it holds, but does not bound their number.
//! Source: CVE-2023-44487 (calls opened and reset at once), CVE-2019-9512 to 9518 (pings, settings, empty frames), and
//! gRPC's rules for pings.

use std::sync::Arc;
use std::time::{Duration, Instant};

use alipes_protocol::limits::{
    GRPC_IDLE_PING_TIME, HTTP2_CONTROL_BURST_SECONDS, HTTP2_DATA_CREDIT_BYTES, HTTP2_FRAMES_PER_QUANTUM,
    HTTP2_SMALL_DATA_BYTES,
};
use bytes::{BufMut, Bytes, BytesMut};

use super::PREFACE;
use super::frames::{self, Frame, Frames};
use crate::connection::Activity;

/// `ENHANCE_YOUR_CALM`. Source: RFC 9113, section 7.
const CALM: u32 = 0xb;

/// A limit that a client exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flood {
    /// The client pings too often.
    Pings,
    /// The client sends too many frames that carry nothing.
    Control,
}

impl Flood {
    /// The text of the `GOAWAY` frame; gRPC clients know the first and ping less often afterwards.
    fn text(self) -> &'static [u8] {
        match self {
            Flood::Pings => b"too_many_pings",
            Flood::Control => b"too_many_control_frames",
        }
    }
}

/// How often a client may ping. Source: gRPC's `grpc.http2.min_ping_interval_without_data_ms` and its related
/// arguments.
#[derive(Clone, Copy, Debug)]
pub struct PingRules {
    /// Shortest interval between two pings while nothing is sent to the client.
    pub interval: Duration,
    /// Earlier pings that are tolerated; 0 tolerates any number.
    pub strikes: u32,
    /// A client without calls may ping as often.
    pub without_calls: bool,
}

/// Checks the frames of one connection against the limits.
pub struct FrameGuard {
    incoming: Frames,
    outgoing: Frames,
    activity: Arc<Activity>,
    pings: Option<Pings>,
    budget: Option<Budget>,
    small_data: SmallData,
    last_stream: u32,
    /// Frames read since the connection last yielded to others.
    in_quantum: u32,
}

impl FrameGuard {
    /// A guard that allows `frames_per_s` frames that carry nothing, and pings as the rules say.
    pub fn new(activity: Arc<Activity>, frames_per_s: u32, rules: Option<PingRules>) -> FrameGuard {
        FrameGuard {
            incoming: Frames::after(PREFACE.len()),
            outgoing: Frames::after(0),
            activity,
            pings: rules.map(|rules| Pings { rules, last: None, strikes: 0 }),
            budget: (frames_per_s > 0).then(|| Budget::new(frames_per_s, alipes_clock::now())),
            small_data: SmallData::default(),
            last_stream: 0,
            in_quantum: 0,
        }
    }

    /// Checks received bytes.
    ///
    /// # Errors
    ///
    /// The client exceeds a limit.
    #[inline]
    pub fn received(&mut self, bytes: &[u8]) -> Result<(), Flood> {
        let FrameGuard { incoming, activity, pings, budget, small_data, last_stream, in_quantum, .. } = self;
        let mut flood = None;
        incoming.pass(bytes, |frame| {
            *in_quantum += 1;
            if frame.kind == frames::HEADERS {
                *last_stream = frame.stream;
            } else if carries_nothing(&frame, small_data) {
                flood = flood.or_else(|| check(&frame, activity, pings.as_mut(), budget.as_mut()));
            }
        });
        flood.map_or(Ok(()), Err)
    }

    /// Whether the connection has used up its quantum and should yield to others: a few bytes of frames without content
    /// can keep a thread busy for a second. A new quantum begins.
    #[inline]
    pub fn has_used_quantum(&mut self) -> bool {
        let over = self.in_quantum >= HTTP2_FRAMES_PER_QUANTUM;
        self.in_quantum = if over { 0 } else { self.in_quantum };
        over
    }

    /// Begins a new quantum: there was nothing more to read.
    #[inline]
    pub fn begin_quantum(&mut self) {
        self.in_quantum = 0;
    }

    /// Observes sent bytes.
    #[inline]
    pub fn sent(&mut self, bytes: &[u8]) {
        let FrameGuard { outgoing, pings, .. } = self;
        outgoing.pass(bytes, |frame| {
            if let (frames::DATA | frames::HEADERS, Some(pings)) = (frame.kind, pings.as_mut()) {
                pings.reset();
            }
        });
    }

    /// The `GOAWAY` frame that names the flood; none in the middle of another frame.
    pub fn goaway(&self, flood: Flood) -> Option<Bytes> {
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

/// Whether a frame carries nothing of a request, or next to nothing.
#[inline]
fn carries_nothing(frame: &Frame, small_data: &mut SmallData) -> bool {
    match frame.kind {
        frames::PRIORITY | frames::RST_STREAM => true,
        frames::SETTINGS | frames::PING => frame.flags & frames::ACK == 0,
        frames::DATA => small_data.count(frame),
        _ => false,
    }
}

#[cold]
fn check(frame: &Frame, activity: &Activity, pings: Option<&mut Pings>, budget: Option<&mut Budget>) -> Option<Flood> {
    if frame.kind == frames::PING
        && let Some(pings) = pings
        && pings.is_too_many(alipes_clock::now(), activity.sample().is_busy())
    {
        return Some(Flood::Pings);
    }
    budget.is_some_and(|budget| budget.is_spent(alipes_clock::now)).then_some(Flood::Control)
}

/// Counts data in very small frames.
#[derive(Default)]
struct SmallData {
    /// Bytes of larger frames that have not been set off against small ones yet.
    credit: usize,
}

impl SmallData {
    /// Whether a data frame counts as one that carries nothing. The last of a call does not: there is one per call.
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

    /// Starts over after data was sent: the client may ping to learn whether it is still served.
    #[inline]
    fn reset(&mut self) {
        (self.last, self.strikes) = (None, 0);
    }
}

/// A number of frames per time; the clock is read once a burst.
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
        (Pings { rules: RULES, last: None, strikes: 0 }, alipes_clock::now())
    }

    #[test]
    fn the_third_early_ping_is_one_too_many() {
        let (mut pings, begin) = pings();
        let too_many: Vec<bool> =
            (0..4).map(|second| pings.is_too_many(begin + Duration::from_secs(second), true)).collect();
        assert_eq!(too_many, [false, false, false, true]);
    }

    #[test]
    fn pings_at_the_interval_are_allowed_while_there_are_calls() {
        let (mut pings, begin) = pings();
        assert!((0..9).all(|number| !pings.is_too_many(begin + RULES.interval * number, true)));
        assert!((9..13).any(|number| pings.is_too_many(begin + RULES.interval * number, false)));
    }

    #[test]
    fn a_client_that_is_sent_data_may_ping_again() {
        let (mut pings, begin) = pings();
        for _ in 0..100 {
            assert!(!pings.is_too_many(begin, true));
            pings.reset();
        }
    }

    #[test]
    fn a_connection_with_many_frames_yields_after_its_quantum() {
        let mut guard = FrameGuard::new(Arc::default(), 0, None);
        guard.received(PREFACE).unwrap();
        let head = Frame { length: 0, kind: frames::WINDOW_UPDATE, flags: 0, stream: 1 }.head();
        guard.received(&head.repeat(HTTP2_FRAMES_PER_QUANTUM as usize - 1)).unwrap();
        assert!(!guard.has_used_quantum());
        guard.received(&head).unwrap();
        assert_eq!([guard.has_used_quantum(), guard.has_used_quantum()], [true, false]);
        guard.received(&head.repeat(HTTP2_FRAMES_PER_QUANTUM as usize)).unwrap();
        guard.begin_quantum();
        assert!(!guard.has_used_quantum());
    }

    #[test]
    fn small_data_frames_are_counted_unless_larger_ones_set_them_off() {
        let data = |length, flags| Frame { length, kind: frames::DATA, flags, stream: 1 };
        let mut small_data = SmallData::default();
        assert!(small_data.count(&data(0, 0)) && small_data.count(&data(1, 0)));
        assert!(small_data.count(&data(HTTP2_SMALL_DATA_BYTES - 1, 0)));
        assert!(!small_data.count(&data(HTTP2_SMALL_DATA_BYTES - 1, frames::END_STREAM)));
        // A client that sends the prefix of each message by itself.
        for _ in 0..100_000 {
            assert!(!small_data.count(&data(HTTP2_SMALL_DATA_BYTES, 0)));
            assert!(!small_data.count(&data(5, 0)));
        }
        // The credit is limited.
        assert!(!small_data.count(&data(1 << 24, 0)));
        let free = (0..).take_while(|_| !small_data.count(&data(1, 0))).count();
        assert_eq!(free, HTTP2_DATA_CREDIT_BYTES / HTTP2_SMALL_DATA_BYTES);
    }

    #[test]
    fn a_budget_is_spent_by_a_flood_and_not_by_a_habit() {
        let begin = alipes_clock::now();
        let mut budget = Budget::new(10, begin);
        let spent = (0..1000).position(|_| budget.is_spent(|| begin)).unwrap();
        assert_eq!(spent, 10 * HTTP2_CONTROL_BURST_SECONDS as usize);
        let mut budget = Budget::new(10, begin);
        assert!((0..1000).all(|number| !budget.is_spent(|| begin + Duration::from_millis(100) * number)));
    }

    #[test]
    fn goaway_is_sent_between_two_frames_and_not_within_one() {
        let mut guard = FrameGuard::new(Arc::default(), 1, None);
        guard.received(PREFACE).unwrap();
        let reset = Frame { length: 4, kind: frames::RST_STREAM, flags: 0, stream: 1 };
        let bytes = [&reset.head()[..], &[0; 4]].concat().repeat(HTTP2_CONTROL_BURST_SECONDS as usize + 1);
        assert_eq!(guard.received(&bytes), Err(Flood::Control));
        assert_eq!(guard.goaway(Flood::Control).unwrap()[3], frames::GOAWAY);
        guard.sent(&[0, 0, 5, 0]);
        assert_eq!(guard.goaway(Flood::Control), None);
    }
}
