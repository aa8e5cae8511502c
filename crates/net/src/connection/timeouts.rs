//! The time-outs of a connection, decided from counts that are sampled at intervals: no request sets a timer.

use std::sync::Arc;
use std::time::Duration;

use alipes_protocol::limits::REFUSAL_TIME;
use tokio::time::{Instant, sleep};

use super::activity::{Activity, Sample};
use crate::phase::Phase;

/// Longest and shortest interval between two samples.
const LONGEST_INTERVAL: Duration = Duration::from_secs(15);
const SHORTEST_INTERVAL: Duration = Duration::from_millis(5);

/// Bytes that an HTTP/2 client sends to set up its connection: the preface, and the head of its settings.
const HTTP2_SETUP_BYTES: u64 = 33;

/// The time-outs of a connection. None sets no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionTimeouts {
    /// Until the first request begins, and from the first byte of each further head to its last.
    pub head: Option<Duration>,
    /// Between requests.
    pub idle: Option<Duration>,
    /// Without progress of a request body, or of a response that the client has to read. The body and the transport
    /// stream measure it, not the watchdog.
    pub stall: Option<Duration>,
    /// Age at which the connection is retired.
    pub age: Option<Duration>,
    /// From then on until it is closed.
    pub grace: Option<Duration>,
    /// Without a request once the network drains; none keeps such a connection until the cut.
    pub drain: Option<Duration>,
}

/// What to do with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutAction {
    /// Nothing.
    Keep,
    /// End it after its open calls.
    Retire,
    /// Close it: a request head took too long.
    HeadTimeout,
    /// Close it.
    Close,
}

/// Samples the activity of one connection and applies its time-outs.
pub struct Watchdog {
    activity: Arc<Activity>,
    state: TimeoutState,
    interval: Option<Duration>,
}

impl Watchdog {
    /// The watchdog of an HTTP/1 connection.
    pub fn http1(activity: Arc<Activity>, timeouts: ConnectionTimeouts) -> Watchdog {
        Watchdog::new(activity, timeouts, false)
    }

    /// The watchdog of an HTTP/2 connection, where bytes may arrive at any time.
    pub fn http2(activity: Arc<Activity>, timeouts: ConnectionTimeouts) -> Watchdog {
        Watchdog::new(activity, timeouts, true)
    }

    fn new(activity: Arc<Activity>, timeouts: ConnectionTimeouts, http2: bool) -> Watchdog {
        let limits = [timeouts.head, timeouts.idle, timeouts.age, timeouts.grace];
        let shortest = limits.into_iter().flatten().min();
        let interval = shortest.map(|shortest| (shortest / 2).clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL));
        Watchdog { activity, state: TimeoutState::new(timeouts, http2, Instant::now()), interval }
    }

    /// The counts that it samples.
    pub fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// Begins in a phase of the network, before anything was read. A client that connects during a drain has time to
    /// send a request.
    pub fn begin_in(&mut self, phase: Phase) {
        self.activity.ending.reach(phase);
        if phase >= Phase::Draining {
            self.state.timeouts.drain = self.state.timeouts.drain.map(|grace| grace.max(REFUSAL_TIME));
            self.drain();
        }
    }

    /// Sees a phase of the network; true where the connection has to be retired now.
    pub fn reach(&mut self, phase: Phase) -> bool {
        self.activity.ending.reach(phase);
        if phase >= Phase::Cut {
            return !self.is_within_head();
        }
        // A client of HTTP/2 is told at once, and may go on until it has read that.
        let begins = phase >= Phase::Draining && self.drain();
        begins && self.state.http2 && self.state.retire(Instant::now()) == TimeoutAction::Retire
    }

    /// Gives connections without a request the drain's grace; false where they have it, or need none.
    fn drain(&mut self) -> bool {
        let Some(grace) = self.state.drain() else { return false };
        let interval = (grace / 4).clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL);
        self.interval = Some(self.interval.map_or(interval, |before| before.min(interval)));
        true
    }

    /// Whether part of a request head has come, over HTTP/1.
    pub fn is_within_head(&self) -> bool {
        self.state.is_within_head(&self.activity.sample())
    }

    /// The next action; pending for ever where there is no limit.
    pub async fn next(&mut self) -> TimeoutAction {
        let Some(interval) = self.interval else { return std::future::pending().await };
        loop {
            sleep(interval).await;
            match self.state.check(Instant::now(), self.activity.sample()) {
                TimeoutAction::Keep => {}
                action => return action,
            }
        }
    }
}

/// What is known from one sample to the next.
struct TimeoutState {
    timeouts: ConnectionTimeouts,
    http2: bool,
    born: Instant,
    /// Since when the connection has been idle, and the number of calls that had ended by then.
    idle: Option<(u64, Instant)>,
    /// When part of a head was first sampled.
    head: Option<Instant>,
    retired: Option<Instant>,
    aged: Option<Instant>,
    drains: bool,
}

impl TimeoutState {
    fn new(timeouts: ConnectionTimeouts, http2: bool, born: Instant) -> TimeoutState {
        TimeoutState { timeouts, http2, born, idle: None, head: None, retired: None, aged: None, drains: false }
    }

    /// Has heads and idle connections wait no longer than the drain's grace, from the next sample on; the grace.
    fn drain(&mut self) -> Option<Duration> {
        let grace = self.timeouts.drain.filter(|_| !self.drains)?;
        for limit in [&mut self.timeouts.idle, &mut self.timeouts.head] {
            *limit = Some(limit.map_or(grace, |before| before.min(grace)));
        }
        (self.drains, self.idle, self.head) = (true, None, None);
        Some(grace)
    }

    fn check(&mut self, now: Instant, sample: Sample) -> TimeoutAction {
        if over(self.timeouts.grace, self.aged, now) {
            return TimeoutAction::Close;
        }
        // A client that has come during the drain has made its first call.
        if self.drains && self.http2 && self.retired.is_none() && sample.begun > 0 {
            return self.retire(now);
        }
        let idle_since = self.idle_since(now, &sample);
        if idle_since.is_some() && self.is_head_late(now, &sample) {
            return TimeoutAction::HeadTimeout;
        }
        if self.aged.is_none() && over(self.timeouts.age, Some(self.born), now) {
            self.aged = Some(now);
            return self.retire(now);
        }
        if over(self.timeouts.idle, idle_since, now) { self.retire(now) } else { TimeoutAction::Keep }
    }

    fn retire(&mut self, now: Instant) -> TimeoutAction {
        let Some(retired) = self.retired else {
            self.retired = Some(now);
            return TimeoutAction::Retire;
        };
        // A retired connection without calls has lost its client. It is closed only after a second idle time, since a
        // call may have raced with its retirement. Over HTTP/1 there is no such race, and during a drain a client may
        // still be reading the last of its answer.
        let silent = self.idle.is_some() && over(self.timeouts.idle, Some(retired), now);
        if silent && (self.http2 || !self.drains) { TimeoutAction::Close } else { TimeoutAction::Keep }
    }

    /// Since when no call has been open.
    fn idle_since(&mut self, now: Instant, sample: &Sample) -> Option<Instant> {
        if sample.is_busy() {
            (self.idle, self.head) = (None, None);
            return None;
        }
        match self.idle {
            Some((ended, since)) if ended == sample.ended => Some(since),
            _ => {
                (self.idle, self.head) = (Some((sample.ended, now)), None);
                Some(now)
            }
        }
    }

    /// Whether a request head takes too long.
    fn is_head_late(&mut self, now: Instant, sample: &Sample) -> bool {
        // During a drain a client that sends nothing is idle, and not late.
        if sample.begun == 0 && !self.drains {
            let set_up = self.http2 && sample.received >= HTTP2_SETUP_BYTES;
            return !set_up && over(self.timeouts.head, Some(self.born), now);
        }
        if !self.is_within_head(sample) {
            return false;
        }
        let since = *self.head.get_or_insert(now);
        over(self.timeouts.head, Some(since), now)
    }

    /// Whether part of a request head has come. Over HTTP/2 bytes come at any time.
    fn is_within_head(&self, sample: &Sample) -> bool {
        !self.http2 && !sample.is_busy() && sample.received > sample.received_at_end
    }
}

/// Whether a time-out has passed.
fn over(limit: Option<Duration>, since: Option<Instant>, now: Instant) -> bool {
    limit.zip(since).is_some_and(|(limit, since)| now.duration_since(since) >= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: ConnectionTimeouts = ConnectionTimeouts {
        head: Some(Duration::from_secs(3)),
        idle: Some(Duration::from_secs(20)),
        stall: None,
        age: Some(Duration::from_secs(100)),
        grace: Some(Duration::from_secs(10)),
        drain: Some(Duration::from_secs(5)),
    };

    /// The first action for an unchanged sample, taken once a second, and its second.
    fn decided(state: &mut TimeoutState, from: u64, sample: Sample) -> Option<(u64, TimeoutAction)> {
        let begin = state.born;
        (from..from + 300)
            .map(|second| (second, state.check(begin + Duration::from_secs(second), sample)))
            .find(|(_, action)| *action != TimeoutAction::Keep)
    }

    fn state(http2: bool) -> TimeoutState {
        TimeoutState::new(TIMEOUTS, http2, Instant::now())
    }

    #[test]
    fn a_connection_without_a_first_request_is_ended() {
        assert_eq!(decided(&mut state(false), 0, Sample::default()), Some((3, TimeoutAction::HeadTimeout)));
        let drip = Sample { received: 5, ..Sample::default() };
        assert_eq!(decided(&mut state(true), 0, drip), Some((3, TimeoutAction::HeadTimeout)));
    }

    #[test]
    fn a_client_of_http2_may_be_silent_once_it_is_set_up() {
        let set_up = Sample { received: 100, ..Sample::default() };
        assert_eq!(decided(&mut state(true), 0, set_up), Some((20, TimeoutAction::Retire)));
    }

    #[test]
    fn a_retired_connection_is_closed_after_a_second_idle_time() {
        let silent = Sample { received: 100, begun: 1, ended: 1, received_at_end: 100 };
        let mut state = state(true);
        assert_eq!(decided(&mut state, 0, silent), Some((20, TimeoutAction::Retire)));
        assert_eq!(decided(&mut state, 21, silent), Some((40, TimeoutAction::Close)));
    }

    #[test]
    fn a_call_that_races_with_retirement_is_answered() {
        let silent = Sample { received: 100, begun: 1, ended: 1, received_at_end: 100 };
        let mut state = state(true);
        assert_eq!(decided(&mut state, 0, silent), Some((20, TimeoutAction::Retire)));
        let (late, after) = (Sample { begun: 2, ..silent }, Sample { begun: 2, ended: 2, ..silent });
        assert_eq!(state.check(state.born + Duration::from_secs(25), late), TimeoutAction::Keep);
        assert_eq!(decided(&mut state, 26, after), Some((46, TimeoutAction::Close)));
    }

    #[test]
    fn a_slow_head_times_out_and_a_silent_connection_is_retired() {
        let silent = Sample { received: 100, begun: 1, ended: 1, received_at_end: 100 };
        let drip = Sample { received: 101, ..silent };
        assert_eq!(decided(&mut state(false), 0, drip), Some((3, TimeoutAction::HeadTimeout)));
        assert_eq!(decided(&mut state(false), 0, silent), Some((20, TimeoutAction::Retire)));
        assert_eq!(decided(&mut state(true), 0, drip), Some((20, TimeoutAction::Retire)));
    }

    #[test]
    fn a_call_may_take_as_long_as_its_model() {
        let computing = Sample { received: 100, begun: 1, ..Sample::default() };
        assert_eq!(decided(&mut state(false), 0, computing), Some((100, TimeoutAction::Retire)));
    }

    #[test]
    fn an_old_connection_is_retired_and_then_closed() {
        let mut state = state(true);
        let busy = Sample { received: 100, begun: 1, ..Sample::default() };
        assert_eq!(decided(&mut state, 0, busy), Some((100, TimeoutAction::Retire)));
        assert_eq!(decided(&mut state, 101, busy), Some((110, TimeoutAction::Close)));
    }

    /// A client of HTTP/1 between two requests, and one within the head of its next.
    const BETWEEN: Sample = Sample { received: 100, begun: 1, ended: 1, received_at_end: 100 };
    const WITHIN: Sample = Sample { received: 101, ..BETWEEN };

    #[test]
    fn a_drain_gives_idle_connections_its_grace_from_its_begin_on() {
        let ageless = ConnectionTimeouts { age: None, ..TIMEOUTS };
        let mut state = TimeoutState::new(ageless, false, Instant::now());
        for second in 0..15 {
            assert_eq!(state.check(state.born + Duration::from_secs(second), BETWEEN), TimeoutAction::Keep);
        }
        assert_eq!(state.drain(), TIMEOUTS.drain);
        assert_eq!(state.drain(), None, "it drains already");
        assert_eq!(decided(&mut state, 15, BETWEEN), Some((20, TimeoutAction::Retire)));
        // The client may read an answer that has left the model, for as long as it takes.
        assert_eq!(decided(&mut state, 21, BETWEEN), None);
    }

    #[test]
    fn a_drain_gives_heads_no_more_than_their_limit() {
        let mut state = state(false);
        let _ = state.drain();
        assert_eq!(decided(&mut state, 10, WITHIN), Some((13, TimeoutAction::HeadTimeout)));
    }

    #[test]
    fn a_client_without_a_word_is_idle_for_a_drain() {
        let mut state = state(false);
        let _ = state.drain();
        assert_eq!(decided(&mut state, 10, Sample::default()), Some((15, TimeoutAction::Retire)));
    }

    #[test]
    fn a_drain_retires_http2_after_the_first_call_or_the_grace() {
        let (mut new, mut silent) = (state(true), state(true));
        let set_up = Sample { received: 100, ..Sample::default() };
        let _ = (new.drain(), silent.drain());
        assert_eq!(new.check(new.born, set_up), TimeoutAction::Keep);
        let calls = Sample { begun: 1, ..set_up };
        assert_eq!(new.check(new.born + Duration::from_secs(1), calls), TimeoutAction::Retire);
        assert_eq!(decided(&mut silent, 10, set_up), Some((15, TimeoutAction::Retire)));
        assert_eq!(decided(&mut silent, 16, set_up), Some((20, TimeoutAction::Close)));
    }

    #[test]
    fn without_limits_nothing_ends() {
        let mut state = TimeoutState::new(ConnectionTimeouts::default(), false, Instant::now());
        assert_eq!(decided(&mut state, 0, Sample::default()), None);
    }
}
