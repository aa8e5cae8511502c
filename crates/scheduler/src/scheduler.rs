//! One queue of waiting requests, whatever its rule.

use std::ops::ControlFlow;
use std::time::Instant;

use crate::direct::Direct;
use crate::dynamic::{Dynamic, DynamicPolicy};
use crate::why::Outlook;
use crate::work::{Reason, Refused, Work};

/// What an instance that asks for work is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The batch was filled; run it and ask again.
    Take,
    /// Requests wait for company; ask again at this moment, or earlier when woken.
    WaitUntil(Instant),
    /// Nothing waits.
    Idle,
}

/// The queue of a model: who waits, and who runs together.
///
/// Every request that was taken in comes out exactly once: in a batch, by [`remove_where`](Self::remove_where) or by
/// [`drain_all`](Self::drain_all). Nothing is allocated once the queue has been as long as it gets.
#[derive(Debug)]
pub struct Scheduler<W> {
    rule: Rule<W>,
    stopping: bool,
}

#[derive(Debug)]
enum Rule<W> {
    Direct(Direct<W>),
    Dynamic(Dynamic<W>),
}

impl<W: Work> Scheduler<W> {
    /// Each request runs alone, in the order of arrival.
    pub fn direct() -> Self {
        Scheduler { rule: Rule::Direct(Direct::default()), stopping: false }
    }

    /// Requests run together as the policy says.
    pub fn dynamic(policy: DynamicPolicy) -> Self {
        Scheduler { rule: Rule::Dynamic(Dynamic::new(policy)), stopping: false }
    }

    /// Takes a request in at the tail.
    ///
    /// # Errors
    /// [`Reason::Stopping`] after [`stop`](Self::stop); the request comes back with it.
    pub fn enqueue(&mut self, now: Instant, work: W) -> Result<(), Refused<W>> {
        if self.stopping {
            return Err(Refused { work, reason: Reason::Stopping });
        }
        match &mut self.rule {
            Rule::Direct(direct) => direct.enqueue(work),
            Rule::Dynamic(dynamic) => dynamic.enqueue(now, work),
        }
        Ok(())
    }

    /// Puts requests that were taken, but not executed, at the head again, in their order. Never refused: they were taken
    /// in before.
    pub fn put_back(&mut self, now: Instant, works: impl DoubleEndedIterator<Item = W>) {
        match &mut self.rule {
            Rule::Direct(direct) => direct.put_back(works),
            Rule::Dynamic(dynamic) => dynamic.put_back(now, works),
        }
    }

    /// Fills `batch`, which the caller has cleared, if requests are to run at `now`.
    pub fn next(&mut self, now: Instant, batch: &mut Vec<W>) -> Next {
        match &mut self.rule {
            Rule::Direct(direct) => direct.next(batch),
            Rule::Dynamic(dynamic) => dynamic.next(now, self.stopping, batch),
        }
    }

    /// When [`next`](Self::next) will give a batch if nothing else arrives: `now` for at once, `None` if nothing waits.
    pub fn due(&mut self, now: Instant) -> Option<Instant> {
        self.outlook(now).map(|outlook| outlook.due)
    }

    /// What [`next`](Self::next) will give if nothing else arrives, when and why; `None` if nothing waits.
    pub fn outlook(&mut self, now: Instant) -> Option<Outlook> {
        match &mut self.rule {
            Rule::Direct(direct) => direct.outlook(now),
            Rule::Dynamic(dynamic) => dynamic.outlook(now, self.stopping),
        }
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        match &self.rule {
            Rule::Direct(direct) => direct.waiting(),
            Rule::Dynamic(dynamic) => dynamic.waiting(),
        }
    }

    /// Shows the requests that wait, in the order in which they stand, until `see` has seen enough.
    pub fn look(&self, see: impl FnMut(&W) -> ControlFlow<()>) {
        let _ = match &self.rule {
            Rule::Direct(direct) => direct.iter().try_for_each(see),
            Rule::Dynamic(dynamic) => dynamic.iter().try_for_each(see),
        };
    }

    /// Moves the waiting requests that `pick` names into `removed`; the others keep their order and their age.
    pub fn remove_where(&mut self, pick: impl FnMut(&W) -> bool, removed: &mut Vec<W>) {
        match &mut self.rule {
            Rule::Direct(direct) => direct.remove_where(pick, removed),
            Rule::Dynamic(dynamic) => dynamic.remove_where(pick, removed),
        }
    }

    /// Moves everything that waits into `removed`, oldest first.
    pub fn drain_all(&mut self, removed: &mut Vec<W>) {
        self.remove_where(|_| true, removed);
    }

    /// Refuses what comes from now on. What waits may still be taken, and without waiting for company, since none will
    /// come.
    pub fn stop(&mut self) {
        self.stopping = true;
    }
}
