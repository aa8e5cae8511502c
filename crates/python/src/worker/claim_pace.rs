//! How many requests a model that does not batch is given at once.

use std::time::Duration;

/// Requests that are executed together are answered together. As long as this, the first may wait for the others: about
/// what it costs to claim, wake and send one by one instead, ten times.
const TOGETHER: Duration = Duration::from_micros(200);

/// Most requests at once.
const MOST: u64 = 64;

/// By how much a claim may be slower than those before.
const MOST_SLOWDOWN: u64 = 4;

/// How long requests of the model have taken of late.
pub struct ClaimPace {
    request_ns: u64,
}

impl ClaimPace {
    /// The pace of a model that nobody has seen at work: one at a time.
    pub fn new() -> ClaimPace {
        ClaimPace { request_ns: TOGETHER.as_nanos() as u64 }
    }

    /// How many requests to claim, so that all of them take no longer than `TOGETHER`.
    pub fn requests(&self) -> u32 {
        (TOGETHER.as_nanos() as u64 / self.request_ns.max(1)).clamp(1, MOST) as u32
    }

    /// So many requests have taken so long: a moving average, in which a claim counts an eighth, and no more than
    /// `MOST_SLOWDOWN` times what was expected: where another process had the core meanwhile, that says nothing of the
    /// model. A model that has become slow is found out within some claims.
    pub fn note(&mut self, requests: usize, spent_ns: u64) {
        let one = (spent_ns / requests.max(1) as u64).min(self.request_ns.max(1).saturating_mul(MOST_SLOWDOWN));
        self.request_ns = (self.request_ns / 8).saturating_mul(7).saturating_add(one / 8);
    }
}
