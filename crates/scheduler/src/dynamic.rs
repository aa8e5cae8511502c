//! Dynamic batching: requests that wait at the same time run together.
//!
//! Source: the rules are those of Triton's dynamic batcher for one priority level. The queue is walked from its head
//! and a request is never skipped, so the order of arrival is the order of execution.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::scheduler::Next;
use crate::why::{Outlook, Why};
use crate::work::{Waiting, Work};

/// Longest queue delay that is honoured. No request waits a year for company; the bound keeps `entered + delay`
/// inside what the clock can express, whatever number a configuration file holds.
const LONGEST_QUEUE_DELAY: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How a model wants its batches formed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DynamicPolicy {
    /// Most rows in a batch; zero, a model without a batch dimension, counts as one.
    pub max_batch_size: u32,
    /// Sizes in rows that are executed as soon as they are reached; empty stands for `[max_batch_size]`.
    pub preferred_batch_sizes: Vec<u32>,
    /// Longest wait for company, counted from the entry of the oldest waiting request. Zero never waits.
    pub max_queue_delay: Duration,
}

/// The dynamic batcher of one model.
#[derive(Debug)]
pub struct Dynamic<W> {
    policy: DynamicPolicy,
    largest_preferred: u32,
    queue: VecDeque<Waiting<W>>,
    pending: Pending,
}

/// The batch that the head of the queue would form, found so far.
///
/// It depends on the waiting requests alone, not on the time, and a request at the tail never changes what was found
/// before it. So it is kept between calls: each request is looked at once, not once per arrival.
#[derive(Debug, Default)]
struct Pending {
    /// Requests from the head that fit together.
    requests: usize,
    /// Their rows, in a width that no queue overflows.
    rows: u64,
    /// Their common key.
    key: u64,
    /// How many of them go without waiting: those that make the best preferred size, or all that stay below the largest.
    best: Option<(usize, Why)>,
    /// Why the request behind them cannot join, where it cannot: waiting would gain nothing.
    closed: Option<Why>,
}

/// What the head of the queue asks for at a given moment.
enum Decision {
    Take { requests: usize, why: Why },
    Wait { until: Instant },
    Nothing,
}

impl<W: Work> Dynamic<W> {
    /// A batcher with nothing waiting.
    pub fn new(mut policy: DynamicPolicy) -> Self {
        policy.max_batch_size = policy.max_batch_size.max(1);
        policy.max_queue_delay = policy.max_queue_delay.min(LONGEST_QUEUE_DELAY);
        if policy.preferred_batch_sizes.is_empty() {
            policy.preferred_batch_sizes.push(policy.max_batch_size);
        }
        let largest_preferred = policy.preferred_batch_sizes.iter().copied().max().unwrap_or(policy.max_batch_size);
        Dynamic { policy, largest_preferred, queue: VecDeque::new(), pending: Pending::default() }
    }

    /// The policy, with its defaults filled in.
    pub fn policy(&self) -> &DynamicPolicy {
        &self.policy
    }

    pub(crate) fn enqueue(&mut self, now: Instant, work: W) {
        self.queue.push_back(Waiting { entered: now, work });
    }

    /// They have waited once already, so they wait for no further company than what is there.
    pub(crate) fn put_back(&mut self, now: Instant, works: impl DoubleEndedIterator<Item = W>) {
        let entered = now.checked_sub(self.policy.max_queue_delay).unwrap_or(now);
        works.rev().for_each(|work| self.queue.push_front(Waiting { entered, work }));
        self.pending = Pending::default();
    }

    pub(crate) fn next(&mut self, now: Instant, stopping: bool, batch: &mut Vec<W>) -> Next {
        match self.decide(now, stopping) {
            Decision::Take { requests, .. } => {
                batch.extend(self.queue.drain(..requests).map(|waiting| waiting.work));
                self.pending = Pending::default();
                Next::Take
            }
            Decision::Wait { until } => Next::WaitUntil(until),
            Decision::Nothing => Next::Idle,
        }
    }

    /// When the head of the queue is to be taken, and why; `None` if nothing waits.
    pub(crate) fn outlook(&mut self, now: Instant, stopping: bool) -> Option<Outlook> {
        match self.decide(now, stopping) {
            Decision::Take { requests, why } => Some(Outlook { due: now, requests, why }),
            Decision::Wait { until } => {
                Some(Outlook { due: until, requests: self.pending.requests, why: Why::Company })
            }
            Decision::Nothing => None,
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &W> {
        self.queue.iter().map(|waiting| &waiting.work)
    }

    pub(crate) fn remove_where(&mut self, mut pick: impl FnMut(&W) -> bool, removed: &mut Vec<W>) {
        self.pending = Pending::default();
        // One turn of the ring keeps the order, moves each request once and allocates nothing.
        for _ in 0..self.queue.len() {
            let Some(waiting) = self.queue.pop_front() else { return };
            if pick(&waiting.work) {
                removed.push(waiting.work);
            } else {
                self.queue.push_back(waiting);
            }
        }
    }

    /// The line that decides a batch.
    ///
    /// A preferred size goes at once while the delay runs, or when there is none. Otherwise everything that fits goes
    /// as soon as waiting is over or pointless: the delay has passed, no company can come any more (`stopping`), the
    /// next request cannot join, or no larger preferred size is left to wait for.
    fn decide(&mut self, now: Instant, stopping: bool) -> Decision {
        let Some(oldest) = self.queue.front().map(|waiting| waiting.entered) else {
            return Decision::Nothing;
        };
        self.extend_pending();
        let delay = self.policy.max_queue_delay;
        let until = oldest + delay;
        let patient = now < until && !stopping;
        match self.pending.best {
            Some((requests, why)) if patient || delay.is_zero() => Decision::Take { requests, why },
            _ if patient && self.pending.closed.is_none() && self.pending.rows < u64::from(self.largest_preferred) => {
                Decision::Wait { until }
            }
            _ => Decision::Take { requests: self.pending.requests, why: self.why_all(stopping, patient) },
        }
    }

    /// Why all that fits together goes.
    fn why_all(&self, stopping: bool, patient: bool) -> Why {
        match self.pending.closed {
            Some(why) => why,
            None if stopping => Why::Draining,
            None if self.policy.max_queue_delay.is_zero() => Why::NoDelay,
            None if patient => Why::Full,
            None => Why::Overdue,
        }
    }

    /// Looks at the requests that arrived since the last look, up to the first one that cannot join.
    fn extend_pending(&mut self) {
        let pending = &mut self.pending;
        while let Some(Waiting { work, .. }) = self.queue.get(pending.requests).filter(|_| pending.closed.is_none()) {
            let (rows, key) = (pending.rows + u64::from(work.rows().max(1)), work.key());
            if pending.requests == 0 {
                // The first request always goes in, even one that is larger than a batch may be: it runs alone.
                pending.key = key;
            } else {
                if rows > u64::from(self.largest_preferred) && pending.best.is_none() {
                    pending.best = Some((pending.requests, Why::Full));
                }
                if rows > u64::from(self.policy.max_batch_size) || key != pending.key {
                    pending.closed = Some(if key == pending.key { Why::Full } else { Why::Unlike });
                    return;
                }
            }
            pending.requests += 1;
            pending.rows = rows;
            if self.policy.preferred_batch_sizes.iter().any(|&size| u64::from(size) == rows) {
                pending.best = Some((pending.requests, Why::Preferred));
            }
        }
    }
}
