//! One queue of waiting requests, whatever its rule.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::direct::Direct;
use crate::dynamic::Dynamic;
use crate::policy::{Batching, DynamicPolicy};
use crate::why::Outlook;
use crate::work::{Reason, Refused, Work};

/// How many requests may wait for each caller that has gone before these are looked for. To look through the queue for
/// each of them would cost the square of their number.
pub(crate) const GONE_SHARE: usize = 4;

/// How long a request whose caller has gone may stay for each request that waits. To look at one takes a tenth of that
/// at most, so that callers who go one after the other cost the queue a tenth of its time.
const LINGER: Duration = Duration::from_micros(1);

/// When those whose callers have gone are looked for at the latest.
pub(crate) fn sweep_at(now: Instant, waiting: usize) -> Instant {
    now + LINGER * u32::try_from(waiting).unwrap_or(u32::MAX)
}

/// What an instance does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The batch was filled; run it and ask again.
    Take,
    /// Requests wait for company; ask again at this moment, or earlier when woken.
    WaitUntil(Instant),
    /// Nothing waits.
    Idle,
}

/// The input of a rule's decision, and the list that collects the requests it refuses.
#[derive(Debug)]
pub(crate) struct Context<'a, W> {
    pub(crate) now: Instant,
    /// No more company comes.
    pub(crate) stopping: bool,
    /// Some caller has gone, so that it is worth asking a request whether its has.
    pub(crate) any_gone: bool,
    pub(crate) refused: &'a mut Vec<Refused<W>>,
}

/// The queue of a model: who waits, and who runs together.
///
/// Every request that was taken in comes out exactly once: in a batch, by [`remove_where`](Self::remove_where) or
/// [`drain_all`](Self::drain_all), or among those that the rule itself gives back, which stand in
/// [`refused`](Self::refused) until the owner takes them. Nothing is allocated once the queue has been as long as it
/// gets.
#[derive(Debug)]
pub struct Scheduler<W> {
    rule: Rule<W>,
    stopping: bool,
    gone: usize,
    /// When those whose callers have gone are looked for at the latest.
    sweep_at: Option<Instant>,
    refused: Vec<Refused<W>>,
}

#[derive(Debug)]
enum Rule<W> {
    Direct(Direct<W>),
    Dynamic(Box<Dynamic<W>>),
}

impl<W: Work> Scheduler<W> {
    /// Each request runs alone, in the order of arrival.
    pub fn direct() -> Self {
        Scheduler::with(Rule::Direct(Direct::default()))
    }

    /// Requests run together as the policy says.
    pub fn dynamic(policy: DynamicPolicy) -> Self {
        Scheduler::with(Rule::Dynamic(Box::new(Dynamic::new(policy))))
    }

    fn with(rule: Rule<W>) -> Self {
        Scheduler { rule, stopping: false, gone: 0, sweep_at: None, refused: Vec::new() }
    }

    /// Forms batches in another way from now on, and says whether it does: where each request runs alone, nothing
    /// changes.
    pub fn set_batching(&mut self, batching: Batching) -> bool {
        match &mut self.rule {
            Rule::Direct(_) => false,
            Rule::Dynamic(dynamic) => {
                dynamic.set_batching(batching);
                true
            }
        }
    }

    /// Takes a request in at the tail.
    ///
    /// # Errors
    /// [`Reason::Stopping`] after [`stop`](Self::stop), and [`Reason::QueueFull`] where the policy allows no more to
    /// wait; the request comes back with it.
    pub fn enqueue(&mut self, now: Instant, work: W) -> Result<(), Refused<W>> {
        if self.stopping {
            return Err(Refused { work, reason: Reason::Stopping });
        }
        if self.is_full_for(&work) {
            self.make_room(now);
        }
        match &mut self.rule {
            Rule::Direct(direct) => direct.enqueue(work),
            Rule::Dynamic(dynamic) => dynamic.enqueue(now, work)?,
        }
        Ok(())
    }

    /// Puts requests that were taken, but not executed, at the head again, in their order. Never refused: they were
    /// taken in before.
    pub fn put_back(&mut self, now: Instant, works: impl DoubleEndedIterator<Item = W>) {
        match &mut self.rule {
            Rule::Direct(direct) => direct.put_back(works),
            Rule::Dynamic(dynamic) => dynamic.put_back(now, works),
        }
    }

    /// Fills `batch`, which the caller has cleared, if requests are to run at `now`.
    pub fn next(&mut self, now: Instant, batch: &mut Vec<W>) -> Next {
        let mut context = Context { now, stopping: self.stopping, any_gone: self.gone > 0, refused: &mut self.refused };
        match &mut self.rule {
            Rule::Direct(direct) => direct.next(batch),
            Rule::Dynamic(dynamic) => dynamic.next(&mut context, batch),
        }
    }

    /// When [`next`](Self::next) will give a batch if nothing else arrives: `now` for at once, `None` if nothing waits.
    pub fn due(&mut self, now: Instant) -> Option<Instant> {
        self.outlook(now).map(|outlook| outlook.due)
    }

    /// What [`next`](Self::next) will give if nothing else arrives, when and why; `None` if nothing waits.
    pub fn outlook(&mut self, now: Instant) -> Option<Outlook> {
        let mut context = Context { now, stopping: self.stopping, any_gone: self.gone > 0, refused: &mut self.refused };
        match &mut self.rule {
            Rule::Direct(direct) => direct.outlook(now),
            Rule::Dynamic(dynamic) => dynamic.outlook(&mut context),
        }
    }

    /// The first moment at which the passing of time alone changes something, so that [`expire`](Self::expire) has to
    /// be called: somebody has waited too long, or those whose callers have gone are to be looked for. `None` where
    /// there is no such moment.
    pub fn deadline(&self) -> Option<Instant> {
        let deadline = match &self.rule {
            Rule::Direct(_) => None,
            Rule::Dynamic(dynamic) => dynamic.deadline(),
        };
        [deadline, self.sweep_at].into_iter().flatten().min()
    }

    /// Does what the passing of time asks for: those who have waited too long are given back, or stand behind the
    /// others, and those whose callers have gone are looked for.
    pub fn expire(&mut self, now: Instant) {
        if self.sweep_at.is_some_and(|moment| moment <= now) {
            self.sweep();
        }
        match &mut self.rule {
            Rule::Direct(_) => {}
            Rule::Dynamic(dynamic) => dynamic.expire(now, &mut self.refused),
        }
    }

    /// What the rule has given back, for the owner to take out.
    pub fn refused(&mut self) -> &mut Vec<Refused<W>> {
        &mut self.refused
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

    /// Shows the first of each line.
    pub fn look_at_heads(&self, see: impl FnMut(&W)) {
        match &self.rule {
            Rule::Direct(direct) => direct.iter().take(1).for_each(see),
            Rule::Dynamic(dynamic) => dynamic.heads().for_each(see),
        }
    }

    /// Moves the waiting requests that `pick` names into `removed`; the others keep their order and their age.
    pub fn remove_where(&mut self, pick: impl FnMut(&W) -> bool, removed: &mut Vec<W>) {
        self.each_removed(pick, |work| removed.push(work));
    }

    /// Moves everything that waits into `removed`, in the order in which it would have run.
    pub fn drain_all(&mut self, removed: &mut Vec<W>) {
        self.remove_where(|_| true, removed);
    }

    /// A caller has gone. What it asked for is given back: at once where few wait, else when a quarter of all that
    /// waits is of such callers, when a batch would have it, when it stands in the way of another, and at the latest at
    /// the [deadline](Self::deadline), a microsecond for each that waits.
    pub fn caller_left(&mut self, now: Instant) {
        self.gone += 1;
        if self.waiting() <= GONE_SHARE * self.gone {
            return self.sweep();
        }
        self.sweep_at.get_or_insert(sweep_at(now, self.waiting()));
        if let Rule::Dynamic(dynamic) = &mut self.rule {
            dynamic.look_again();
        }
    }

    /// Refuses what comes from now on. What waits may still be taken, and without waiting for company, since none will
    /// come.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Whether nothing more is taken in.
    pub fn is_stopping(&self) -> bool {
        self.stopping
    }

    fn is_full_for(&self, work: &W) -> bool {
        match &self.rule {
            Rule::Direct(_) => false,
            Rule::Dynamic(dynamic) => dynamic.is_full_for(work),
        }
    }

    fn each_removed(&mut self, pick: impl FnMut(&W) -> bool, removed: impl FnMut(W)) {
        match &mut self.rule {
            Rule::Direct(direct) => direct.remove_where(pick, removed),
            Rule::Dynamic(dynamic) => dynamic.remove_where(pick, removed),
        }
    }

    /// Lets go of those who need no place any more.
    fn make_room(&mut self, now: Instant) {
        self.expire(now);
        if self.gone > 0 {
            self.sweep();
        }
    }

    fn sweep(&mut self) {
        (self.gone, self.sweep_at) = (0, None);
        let mut refused = std::mem::take(&mut self.refused);
        self.each_removed(W::is_cancelled, |work| refused.push(Refused { work, reason: Reason::Cancelled }));
        self.refused = refused;
    }
}
