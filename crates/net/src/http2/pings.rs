//! How often a client may ping.

use std::time::{Duration, Instant};

use alipes_protocol::limits::GRPC_IDLE_PING_TIME;

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

/// The pings of a client.
pub struct Pings {
    rules: PingRules,
    last: Option<Instant>,
    strikes: u32,
}

impl Pings {
    /// No pings yet.
    pub fn new(rules: PingRules) -> Pings {
        Pings { rules, last: None, strikes: 0 }
    }

    /// Counts a ping of a client that has calls, or none; whether it is one too many.
    pub fn is_too_many(&mut self, now: Instant, busy: bool) -> bool {
        let interval = if busy || self.rules.without_calls { self.rules.interval } else { GRPC_IDLE_PING_TIME };
        let too_early = self.last.replace(now).is_some_and(|last| now < last + interval);
        self.strikes += u32::from(too_early);
        self.rules.strikes > 0 && self.strikes > self.rules.strikes
    }

    /// Starts over after data was sent: the client may ping to learn whether it is still served.
    #[inline]
    pub fn reset(&mut self) {
        (self.last, self.strikes) = (None, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: PingRules = PingRules { interval: Duration::from_secs(300), strikes: 2, without_calls: false };

    fn pings() -> (Pings, Instant) {
        (Pings::new(RULES), alipes_clock::now())
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
}
