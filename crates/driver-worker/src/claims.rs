//! Whether a worker claims what it is given.
//!
//! A worker at work claims within microseconds, or executes. One that does neither has been stopped, or has lost its
//! way: what it has not claimed goes to a worker with nothing to do, and after a while its process counts as crashed.
//! What waits behind a long execution goes to a worker with nothing to do as well, should that not have come for it.

use std::time::{Duration, Instant};

use alipes_protocol::limits::WORKER_SILENCE;

/// How often a worker that holds requests is looked at.
pub const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// How long a request waits unclaimed in a worker that executes nothing, before an idle worker takes it over.
const TAKE_OVER_AFTER: Duration = Duration::from_millis(40);

/// Looks without a request before the worker is left alone: requests that come one after the other are one watch.
const LAST_LOOKS: u32 = 50;

/// What a look at a worker sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// It holds requests.
    pub holds: bool,
    /// It executes one.
    pub executes: bool,
    /// It has taken everything off its ring.
    pub caught_up: bool,
    /// The oldest request that it has not claimed.
    pub unclaimed: Option<u64>,
}

/// What is to be done after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing; the worker is looked at again.
    Watch,
    /// Nothing; it is left alone until it is given a request.
    Rest,
    /// An idle worker may take what waits behind a long execution.
    PassOn,
    /// Others may take what it has not claimed.
    TakeOver,
    /// It claims again, after a take-over.
    Resume,
    /// It counts as crashed.
    Silent,
}

/// What is known of a worker's claims from look to look.
#[derive(Debug)]
pub struct ClaimWatch {
    looked: Instant,
    unclaimed: Option<u64>,
    silent: Duration,
    looks_without: u32,
    /// Its requests were taken over, and it has not claimed since.
    pub suspended: bool,
}

impl ClaimWatch {
    /// Begins to watch.
    pub fn new(now: Instant) -> ClaimWatch {
        ClaimWatch { looked: now, unclaimed: None, silent: Duration::ZERO, looks_without: 0, suspended: false }
    }

    /// Judges by what a look sees.
    pub fn judge(&mut self, now: Instant, look: Look) -> Verdict {
        // Time in which nothing ran, as in a frozen container, is not the worker's.
        let spent = now.saturating_duration_since(self.looked).min(2 * LOOK_INTERVAL);
        self.looked = now;
        self.looks_without = if look.holds { 0 } else { self.looks_without + 1 };
        let claims = look.executes || look.caught_up;
        let is_behind = look.executes && look.unclaimed.is_some() && look.unclaimed == self.unclaimed;
        if claims || look.unclaimed != self.unclaimed && !self.suspended {
            self.silent = Duration::ZERO;
        } else {
            self.silent += spent;
        }
        self.unclaimed = look.unclaimed;
        if claims && std::mem::take(&mut self.suspended) {
            return Verdict::Resume;
        }
        match self.silent {
            silent if silent >= WORKER_SILENCE => Verdict::Silent,
            silent if silent >= TAKE_OVER_AFTER && !self.suspended => Verdict::TakeOver,
            _ if is_behind => Verdict::PassOn,
            _ if claims && self.looks_without >= LAST_LOOKS => {
                self.looks_without = 0;
                Verdict::Rest
            }
            _ => Verdict::Watch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Look = Look { holds: false, executes: false, caught_up: true, unclaimed: None };
    const WAITS: Look = Look { holds: true, executes: false, caught_up: false, unclaimed: Some(1) };
    const EXECUTES: Look = Look { holds: true, executes: true, caught_up: false, unclaimed: Some(1) };

    struct Watched(ClaimWatch, Instant);

    impl Watched {
        fn new() -> Watched {
            let now = alipes_clock::now();
            Watched(ClaimWatch::new(now), now)
        }

        /// The verdicts of so many looks that see the same.
        fn see(&mut self, look: Look, times: u32) -> Vec<Verdict> {
            (0..times).map(|_| self.after(LOOK_INTERVAL, look)).collect()
        }

        fn after(&mut self, spent: Duration, look: Look) -> Verdict {
            self.1 += spent;
            self.0.judge(self.1, look)
        }
    }

    fn looks(time: Duration) -> u32 {
        time.div_duration_f64(LOOK_INTERVAL) as u32
    }

    #[test]
    fn an_unclaimed_request_goes_to_others_and_then_the_worker_is_silent() {
        let mut watched = Watched::new();
        assert_eq!(watched.see(WAITS, 3), [Verdict::Watch, Verdict::Watch, Verdict::TakeOver]);
        watched.0.suspended = true;
        let revoked = Look { unclaimed: None, holds: false, ..WAITS };
        let verdicts = watched.see(revoked, looks(WORKER_SILENCE) - 2);
        assert_eq!(verdicts.last(), Some(&Verdict::Silent));
        assert!(verdicts[..verdicts.len() - 1].iter().all(|verdict| *verdict == Verdict::Watch));
    }

    #[test]
    fn a_worker_that_claims_again_gets_requests_again() {
        let mut watched = Watched::new();
        watched.see(WAITS, 3);
        watched.0.suspended = true;
        assert_eq!(watched.see(IDLE, 2), [Verdict::Resume, Verdict::Watch]);
        assert_eq!(watched.see(WAITS, 2), [Verdict::Watch, Verdict::Watch]);
    }

    #[test]
    fn an_execution_is_never_silence_however_long_and_what_waits_behind_it_goes_elsewhere() {
        let mut watched = Watched::new();
        let verdicts = watched.see(EXECUTES, 3 * looks(WORKER_SILENCE));
        assert_eq!(verdicts[0], Verdict::Watch);
        assert!(verdicts[1..].iter().all(|verdict| *verdict == Verdict::PassOn));
        assert_eq!(watched.see(Look { unclaimed: None, ..EXECUTES }, 2), [Verdict::Watch, Verdict::Watch]);
    }

    #[test]
    fn a_worker_that_always_claims_the_oldest_is_not_silent() {
        let mut watched = Watched::new();
        for ticket in 1..3 * u64::from(looks(WORKER_SILENCE)) {
            assert_eq!(watched.after(LOOK_INTERVAL, Look { unclaimed: Some(ticket), ..WAITS }), Verdict::Watch);
        }
    }

    #[test]
    fn time_in_which_nothing_ran_counts_as_two_looks() {
        let mut watched = Watched::new();
        assert_eq!(watched.after(LOOK_INTERVAL, WAITS), Verdict::Watch);
        watched.0.suspended = true;
        assert_eq!(watched.after(10 * WORKER_SILENCE, WAITS), Verdict::Watch);
        assert_eq!(watched.0.silent, 2 * LOOK_INTERVAL);
    }

    #[test]
    fn a_worker_without_requests_is_left_alone_after_a_while() {
        let mut watched = Watched::new();
        let verdicts = watched.see(IDLE, LAST_LOOKS);
        assert_eq!(verdicts.last(), Some(&Verdict::Rest));
        assert!(verdicts[..verdicts.len() - 1].iter().all(|verdict| *verdict == Verdict::Watch));
    }
}
