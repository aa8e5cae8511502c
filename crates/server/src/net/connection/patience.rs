//! How long a connection is kept, decided from counts that are looked at now and then: no request sets a timer.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::pulse::{Pulse, Sample};

/// Longest and shortest time between two looks.
const LONGEST_NAP: Duration = Duration::from_secs(15);
const SHORTEST_NAP: Duration = Duration::from_millis(5);

/// Bytes that a client of HTTP/2 has sent when its connection is set up: the preface, and the head of its settings.
const HTTP2_BEGINNING: u64 = 33;

/// How long a connection may do what. None sets no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patience {
    /// Until the first request has come, and, once something of the next one has come, until its head is whole.
    pub head: Option<Duration>,
    /// Between requests.
    pub idle: Option<Duration>,
    /// While next to nothing comes of a body, or an answer waits for the client to take it. Whoever reads or sends looks
    /// to that, not the watch.
    pub stall: Option<Duration>,
    /// In all, until it is asked to go.
    pub age: Option<Duration>,
    /// From then on until it is closed.
    pub grace: Option<Duration>,
}

/// What to do with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Keep,
    /// Let it end after the calls that it is in.
    Retire,
    /// End it: a head did not come.
    NoHead,
    /// End it.
    Cut,
}

/// Watches one connection.
pub struct Watch {
    pulse: Arc<Pulse>,
    judge: Judge,
    nap: Option<Duration>,
}

impl Watch {
    /// Watches a connection on which HTTP/1 is spoken.
    pub fn http1(pulse: Arc<Pulse>, patience: Patience) -> Watch {
        Watch::new(pulse, patience, false)
    }

    /// Watches a connection on which HTTP/2 is spoken, where bytes may come at any time.
    pub fn http2(pulse: Arc<Pulse>, patience: Patience) -> Watch {
        Watch::new(pulse, patience, true)
    }

    fn new(pulse: Arc<Pulse>, patience: Patience, http2: bool) -> Watch {
        let limits = [patience.head, patience.idle, patience.age, patience.grace];
        let shortest = limits.into_iter().flatten().min();
        let nap = shortest.map(|shortest| (shortest / 2).clamp(SHORTEST_NAP, LONGEST_NAP));
        Watch { pulse, judge: Judge::new(patience, http2, Instant::now()), nap }
    }

    /// The next thing to do: never comes where there is no limit.
    pub async fn next(&mut self) -> Verdict {
        let Some(nap) = self.nap else { return std::future::pending().await };
        loop {
            sleep(nap).await;
            match self.judge.look(Instant::now(), self.pulse.sample()) {
                Verdict::Keep => {}
                verdict => return verdict,
            }
        }
    }
}

/// Decides, from one look to the next.
struct Judge {
    patience: Patience,
    http2: bool,
    born: Instant,
    /// Calls that had ended when the connection was first seen idle, and when that was.
    idle: Option<(u64, Instant)>,
    /// When something of a head was first seen.
    head: Option<Instant>,
    retired: Option<Instant>,
    aged: Option<Instant>,
}

impl Judge {
    fn new(patience: Patience, http2: bool, born: Instant) -> Judge {
        Judge { patience, http2, born, idle: None, head: None, retired: None, aged: None }
    }

    fn look(&mut self, now: Instant, seen: Sample) -> Verdict {
        if over(self.patience.grace, self.aged, now) {
            return Verdict::Cut;
        }
        let idle_since = self.idle_since(now, &seen);
        if idle_since.is_some() && self.lacks_head(now, &seen) {
            return Verdict::NoHead;
        }
        if self.aged.is_none() && over(self.patience.age, Some(self.born), now) {
            self.aged = Some(now);
            return self.retire(now);
        }
        if over(self.patience.idle, idle_since, now) { self.retire(now) } else { Verdict::Keep }
    }

    fn retire(&mut self, now: Instant) -> Verdict {
        let Some(retired) = self.retired else {
            self.retired = Some(now);
            return Verdict::Retire;
        };
        // It was asked and is still here, without a call: nobody is at the other end. Not before it has been silent as long
        // again, for a call may have been on its way when the connection was asked to go.
        let silent = self.idle.is_some() && over(self.patience.idle, Some(retired), now);
        if silent { Verdict::Cut } else { Verdict::Keep }
    }

    /// Since when no call has been open.
    fn idle_since(&mut self, now: Instant, seen: &Sample) -> Option<Instant> {
        if seen.is_busy() {
            (self.idle, self.head) = (None, None);
            return None;
        }
        match self.idle {
            Some((ended, since)) if ended == seen.ended => Some(since),
            _ => {
                (self.idle, self.head) = (Some((seen.ended, now)), None);
                Some(now)
            }
        }
    }

    /// Whether a head takes too long.
    fn lacks_head(&mut self, now: Instant, seen: &Sample) -> bool {
        if seen.begun == 0 {
            let set_up = self.http2 && seen.received >= HTTP2_BEGINNING;
            return !set_up && over(self.patience.head, Some(self.born), now);
        }
        if self.http2 || seen.received == seen.received_at_end {
            return false;
        }
        let since = *self.head.get_or_insert(now);
        over(self.patience.head, Some(since), now)
    }
}

/// Whether something has lasted too long.
fn over(limit: Option<Duration>, since: Option<Instant>, now: Instant) -> bool {
    limit.zip(since).is_some_and(|(limit, since)| now.duration_since(since) >= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
        head: Some(Duration::from_secs(3)),
        idle: Some(Duration::from_secs(20)),
        stall: None,
        age: Some(Duration::from_secs(100)),
        grace: Some(Duration::from_secs(10)),
    };

    /// What is decided when the connection looks the same for seconds, one look each, and after how many.
    fn decided(judge: &mut Judge, from: u64, sample: Sample) -> Option<(u64, Verdict)> {
        let begin = judge.born;
        (from..from + 300)
            .map(|second| (second, judge.look(begin + Duration::from_secs(second), sample)))
            .find(|(_, verdict)| *verdict != Verdict::Keep)
    }

    fn judge(http2: bool) -> Judge {
        Judge::new(PATIENCE, http2, Instant::now())
    }

    #[test]
    fn a_connection_without_a_first_request_is_ended() {
        assert_eq!(decided(&mut judge(false), 0, Sample::default()), Some((3, Verdict::NoHead)));
        let drip = Sample { received: 5, ..Sample::default() };
        assert_eq!(decided(&mut judge(true), 0, drip), Some((3, Verdict::NoHead)));
    }

    #[test]
    fn a_client_of_http2_may_be_silent_once_it_is_set_up() {
        let set_up = Sample { received: 100, ..Sample::default() };
        assert_eq!(decided(&mut judge(true), 0, set_up), Some((20, Verdict::Retire)));
    }

    #[test]
    fn a_connection_that_was_asked_to_go_is_ended_after_as_long_again_without_a_call() {
        let silent = Sample { received: 100, begun: 1, ended: 1, received_at_end: 100 };
        let mut judge = judge(true);
        assert_eq!(decided(&mut judge, 0, silent), Some((20, Verdict::Retire)));
        assert_eq!(decided(&mut judge, 21, silent), Some((40, Verdict::Cut)));
    }

    #[test]
    fn a_call_that_was_on_its_way_when_the_connection_was_asked_to_go_is_answered() {
        let silent = Sample { received: 100, begun: 1, ended: 1, received_at_end: 100 };
        let mut judge = judge(true);
        assert_eq!(decided(&mut judge, 0, silent), Some((20, Verdict::Retire)));
        let (late, after) = (Sample { begun: 2, ..silent }, Sample { begun: 2, ended: 2, ..silent });
        assert_eq!(judge.look(judge.born + Duration::from_secs(25), late), Verdict::Keep);
        assert_eq!(decided(&mut judge, 26, after), Some((46, Verdict::Cut)));
    }

    #[test]
    fn a_head_that_drips_in_is_not_waited_for_and_a_silent_connection_is() {
        let silent = Sample { received: 100, begun: 1, ended: 1, received_at_end: 100 };
        let drip = Sample { received: 101, ..silent };
        assert_eq!(decided(&mut judge(false), 0, drip), Some((3, Verdict::NoHead)));
        assert_eq!(decided(&mut judge(false), 0, silent), Some((20, Verdict::Retire)));
        assert_eq!(decided(&mut judge(true), 0, drip), Some((20, Verdict::Retire)));
    }

    #[test]
    fn a_call_may_take_as_long_as_its_model() {
        let computing = Sample { received: 100, begun: 1, ..Sample::default() };
        assert_eq!(decided(&mut judge(false), 0, computing), Some((100, Verdict::Retire)));
    }

    #[test]
    fn an_old_connection_is_asked_to_go_and_then_closed() {
        let mut judge = judge(true);
        let busy = Sample { received: 100, begun: 1, ..Sample::default() };
        assert_eq!(decided(&mut judge, 0, busy), Some((100, Verdict::Retire)));
        assert_eq!(decided(&mut judge, 101, busy), Some((110, Verdict::Cut)));
    }

    #[test]
    fn without_limits_nothing_ends() {
        let mut judge = Judge::new(Patience::default(), false, Instant::now());
        assert_eq!(decided(&mut judge, 0, Sample::default()), None);
    }
}
