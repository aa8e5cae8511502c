//! Dynamic batching: requests that wait at the same time run together.
//!
//! Source: the rules are those of Triton's dynamic batcher. The queue is walked from its head, the highest priority
//! first, and a request is never skipped, so that within a level the order of arrival is the order of execution.

use std::time::Instant;

use crate::levels::{Levels, Rank, Spot};
use crate::policy::{Batching, DynamicPolicy};
use crate::scheduler::{Context, Next};
use crate::why::{Outlook, Why};
use crate::work::{Reason, Refused, Work};

/// The dynamic batcher of one model.
#[derive(Debug)]
pub struct Dynamic<W> {
    policy: DynamicPolicy,
    largest_preferred: u32,
    /// Most rows that the model takes, whatever the policy has been changed to.
    largest: u32,
    queue: Levels<W>,
    pending: Pending,
}

/// The batch that the head of the queue would form, found so far.
///
/// It depends on the waiting requests alone, not on the time, and a request that comes behind those that were looked at
/// never changes what was found. So it is kept between calls: each request is looked at once, not once per arrival.
#[derive(Debug, Default)]
struct Pending {
    /// Requests from the head that fit together.
    requests: usize,
    /// Their rows, in a width that no queue overflows.
    rows: u64,
    /// Their common key.
    key: u64,
    /// When the one that has waited longest came.
    oldest: Option<Instant>,
    /// The last one of them.
    last: Option<Spot>,
    /// How many of them go without waiting: those that make the best preferred size, or all that stay below the
    /// largest.
    best: Option<(usize, Why)>,
    /// Why the request behind them cannot join, where it cannot: waiting would gain nothing.
    closed: Option<Why>,
    /// The line of the last request that was looked at: who comes to an earlier one changes what was found.
    seen: Option<Rank>,
    /// Whether it ends where the level of its first request does; see [`Dynamic::is_flooded`].
    flooded: bool,
}

/// What the head of the queue asks for at a given moment.
enum Choice {
    Take { requests: usize, why: Why },
    Wait { until: Instant },
    Nothing,
}

impl<W: Work> Dynamic<W> {
    /// A batcher with nothing waiting.
    pub fn new(policy: DynamicPolicy) -> Self {
        let policy = policy.settled();
        let largest_preferred = policy.preferred_batch_sizes.iter().copied().max().unwrap_or(policy.max_batch_size);
        let queue = Levels::new(policy.priorities.clone());
        let largest = policy.max_batch_size;
        Dynamic { policy, largest_preferred, largest, queue, pending: Pending::default() }
    }

    /// Forms batches in another way from now on; those who wait keep their place and their age.
    pub(crate) fn set_batching(&mut self, batching: Batching) {
        self.policy = std::mem::take(&mut self.policy).batched(batching, self.largest);
        self.largest_preferred = self.policy.max_batch_size;
        self.pending = Pending::default();
    }

    /// The policy, with its defaults filled in.
    pub fn policy(&self) -> &DynamicPolicy {
        &self.policy
    }

    /// Whether no more requests may wait where this one would.
    pub(crate) fn is_full_for(&self, work: &W) -> bool {
        self.queue.is_full_for(work)
    }

    pub(crate) fn enqueue(&mut self, now: Instant, work: W) -> Result<(), Refused<W>> {
        if self.queue.is_full_for(&work) {
            return Err(Refused { work, reason: Reason::QueueFull });
        }
        let rank = self.queue.push_back(now, work);
        if self.pending.seen.is_some_and(|seen| rank < seen) {
            self.pending = Pending::default();
        }
        Ok(())
    }

    /// They have waited once already, so they wait for no further company than what is there.
    pub(crate) fn put_back(&mut self, now: Instant, works: impl DoubleEndedIterator<Item = W>) {
        let entered = now.checked_sub(self.policy.max_queue_delay).unwrap_or(now);
        works.rev().for_each(|work| self.queue.push_front(entered, work));
        self.pending = Pending::default();
    }

    pub(crate) fn next(&mut self, context: &mut Context<'_, W>, batch: &mut Vec<W>) -> Next {
        match self.decide(context) {
            Choice::Take { requests, .. } => {
                for _ in 0..requests {
                    let Some(first) = self.queue.first() else { break };
                    batch.push(self.queue.remove(first));
                }
                self.pending = Pending::default();
                Next::Take
            }
            Choice::Wait { until } => Next::WaitUntil(until),
            Choice::Nothing => Next::Idle,
        }
    }

    /// When the head of the queue is to be taken, and why; `None` if nothing waits.
    pub(crate) fn outlook(&mut self, context: &mut Context<'_, W>) -> Option<Outlook> {
        match self.decide(context) {
            Choice::Take { requests, why } => Some(Outlook { due: context.now, requests, why }),
            Choice::Wait { until } => Some(Outlook { due: until, requests: self.pending.requests, why: Why::Company }),
            Choice::Nothing => None,
        }
    }

    /// Some request that was looked at may have lost its caller since.
    pub(crate) fn look_again(&mut self) {
        self.pending = Pending::default();
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &W> {
        self.queue.iter()
    }

    pub(crate) fn heads(&self) -> impl Iterator<Item = &W> {
        self.queue.heads()
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.queue.deadline()
    }

    pub(crate) fn expire(&mut self, now: Instant, refused: &mut Vec<Refused<W>>) {
        if self.queue.deadline().is_some_and(|deadline| deadline <= now) && self.queue.expire(now, refused) {
            self.pending = Pending::default();
        }
    }

    pub(crate) fn remove_where(&mut self, pick: impl FnMut(&W) -> bool, removed: impl FnMut(W)) {
        self.pending = Pending::default();
        self.queue.remove_where(pick, removed);
    }

    /// The line that decides a batch.
    ///
    /// A preferred size goes at once while the delay runs, or when there is none. Otherwise everything that fits goes
    /// as soon as waiting is over or pointless: the delay has passed, no company can come any more (`stopping`), the
    /// next request cannot join, or no larger preferred size is left to wait for.
    fn decide(&mut self, context: &mut Context<'_, W>) -> Choice {
        self.expire(context.now, context.refused);
        if self.is_held(context.stopping) {
            return Choice::Nothing;
        }
        self.extend_pending(context);
        let Pending { oldest: Some(oldest), best, closed, rows, requests, .. } = self.pending else {
            return Choice::Nothing;
        };
        let delay = self.policy.max_queue_delay;
        let until = oldest + delay;
        let patient = context.now < until && !context.stopping;
        match best {
            Some((requests, why)) if patient || delay.is_zero() => Choice::Take { requests, why },
            _ if patient && closed.is_none() && rows < u64::from(self.largest_preferred) => Choice::Wait { until },
            _ => Choice::Take { requests, why: self.why_all(context.stopping, patient) },
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

    /// Whether too few requests wait for the first batch of all; asked once too few, never again.
    fn is_held(&mut self, stopping: bool) -> bool {
        if self.policy.held_until > 0 && (stopping || self.queue.len() >= self.policy.held_until) {
            self.policy.held_until = 0;
        }
        self.policy.held_until > 0
    }

    /// Whether more waits below the level of the first request than a batch has room for.
    ///
    /// Rows take time: urgent requests that take as many of the less urgent ones along as fit are answered when all of
    /// these are. Where few wait below, that saves a batch and soon costs nothing; where a flood does, every urgent
    /// request would wait for two full batches, the one that runs and its own.
    fn is_flooded(&self) -> bool {
        self.queue.below_first() >= self.policy.max_batch_size as usize
    }

    /// Looks at the requests that arrived since the last look, up to the first one that cannot join.
    fn extend_pending(&mut self, context: &mut Context<'_, W>) {
        loop {
            let flooded = self.is_flooded();
            if flooded != self.pending.flooded {
                self.pending = Pending { flooded, ..Pending::default() };
            }
            if self.pending.closed.is_some() {
                return;
            }
            let last = self.pending.last;
            let Some(spot) = last.map_or_else(|| self.queue.first(), |last| self.queue.behind(last)) else { return };
            if context.any_gone && self.queue.get(spot).work.is_cancelled() {
                let work = self.queue.remove(spot);
                context.refused.push(Refused { work, reason: Reason::Cancelled });
                continue;
            }
            self.look_at(spot);
        }
    }

    fn look_at(&mut self, spot: Spot) {
        let waiting = self.queue.get(spot);
        let pending = &mut self.pending;
        pending.seen = Some(spot.rank);
        let (rows, key) = (pending.rows + u64::from(waiting.work.rows().max(1)), waiting.work.key());
        if pending.requests == 0 {
            // The first request always goes in, even one that is larger than a batch may be: it runs alone.
            pending.key = key;
        } else {
            if pending.flooded && pending.last.is_some_and(|last| last.rank.level() != spot.rank.level()) {
                pending.closed = Some(Why::Urgent);
                return;
            }
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
        pending.last = Some(spot);
        pending.oldest = Some(pending.oldest.map_or(waiting.entered, |oldest| oldest.min(waiting.entered)));
        if self.policy.preferred_batch_sizes.iter().any(|&size| u64::from(size) == rows) {
            pending.best = Some((pending.requests, Why::Preferred));
        }
    }
}
