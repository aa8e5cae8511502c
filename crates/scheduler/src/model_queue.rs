//! The queue and the instances of one version of a model, as one state machine.
//!
//! Three facts keep a wake-up from being lost, and every transition keeps them:
//!
//! 1. An instance is idle only if nothing waits, or if another instance, the one timed waiter, waits for the delay.
//! 2. The waiter sleeps no longer than until the head of the queue is due; who makes it due earlier wakes it.
//! 3. Every other claimed instance is on its way to [`Queue::next`], or to [`Queue::finish`]: running a batch, just
//!    started or just woken.
//!
//! An instance becomes idle in the same step that finds nothing to do, so no request slips in between. With a delay
//! one waiter is enough: when it takes a batch and leaves requests behind, it passes the watch on to an idle instance.
//!
//! What time alone changes, as for a request that waits too long, is not the instances' business, which may all be
//! busy: the owner keeps one alarm for it, which [`Aftermath`] sets, and calls [`Queue::expire`] when it goes off.

use std::ops::ControlFlow;
use std::time::Instant;

use crate::instances::Instances;
use crate::journal::Journal;
use crate::policy::Batching;
use crate::queue::Queue;
use crate::scheduler::{Next, Scheduler};
use crate::why::{Decision, Explanation, Hold, Outlook, Why};
use crate::work::{Reason, Refused, SequenceId, Work};

/// What the caller does after it has released the mutex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "an effect that is dropped is a request that nobody comes for"]
pub enum Effect {
    /// Nothing: a claimed instance comes for what waits.
    None,
    /// This idle instance was claimed: drive it, that is call [`Queue::next`] for it until it is told
    /// [`Next::Idle`] or is given back by [`Queue::finish`].
    Start(usize),
    /// This instance sleeps on [`Next::WaitUntil`]: let it ask again now. The wake has to stick if it comes before the
    /// sleep, and may come late: an instance that wakes for nothing only asks once more.
    Wake(usize),
}

/// What transitions leave to be done once the mutex is released, besides their effects; almost always nothing.
#[derive(Debug)]
#[must_use = "a request that is dropped here is never answered"]
pub struct Aftermath<W> {
    /// Requests that will not be executed and still have to be answered.
    pub refused: Vec<Refused<W>>,
    /// Call [`Queue::expire`] at this moment. It replaces a later one that was asked for before; a call too many does
    /// no harm.
    pub alarm: Option<Instant>,
    /// Sequences that began anew although they had not ended; the person who watches the log may want to know.
    pub conflicts: Vec<SequenceId>,
}

/// The instance that sleeps until requests have waited long enough for company.
#[derive(Debug)]
struct Waiter {
    instance: usize,
    until: Instant,
}

/// What waits for one version of a model and which instances come for it.
#[derive(Debug)]
pub struct ModelQueue<W> {
    scheduler: Scheduler<W>,
    instances: Instances,
    waiter: Option<Waiter>,
    /// The moment for which the owner knows to call [`expire`](Queue::expire).
    alarm: Option<Instant>,
    journal: Journal,
}

impl<W: Work> ModelQueue<W> {
    /// A queue for `instances` instances, all idle.
    ///
    /// # Panics
    /// If there is no instance: nobody would ever come for a request.
    pub fn new(scheduler: Scheduler<W>, instances: usize) -> Self {
        assert!(instances > 0, "a model has at least one instance");
        let instances = Instances::new(instances);
        ModelQueue { scheduler, instances, waiter: None, alarm: None, journal: Journal::default() }
    }
}

impl<W: Work> Queue<W> for ModelQueue<W> {
    fn submit(&mut self, now: Instant, work: W) -> Result<Effect, Refused<W>> {
        if let Err(refused) = self.scheduler.enqueue(now, work) {
            self.journal.note(now, Decision::Refused { requests: 1 });
            return Err(refused);
        }
        Ok(self.attend(now))
    }

    fn next(&mut self, now: Instant, instance: usize, batch: &mut Vec<W>) -> (Next, Effect) {
        self.leave_watch(instance);
        if self.instances.is_retired(instance) {
            return (Next::Idle, self.finish(now, instance));
        }
        let outlook = self.scheduler.outlook(now);
        match self.scheduler.next(now, batch) {
            Next::Take => {
                self.note_batch(now, instance, batch, outlook);
                (Next::Take, self.attend(now))
            }
            Next::WaitUntil(until) if self.waiter.is_none() => {
                self.journal.note(now, Decision::Waits { instance, until });
                self.waiter = Some(Waiter { instance, until });
                (Next::WaitUntil(until), Effect::None)
            }
            Next::WaitUntil(_) | Next::Idle => {
                self.instances.release(instance);
                (Next::Idle, Effect::None)
            }
        }
    }

    fn claim(&mut self) -> Option<usize> {
        let is_spoken_for = self.waiter.is_some() || self.scheduler.is_stopping() || self.scheduler.waiting() > 0;
        if is_spoken_for { None } else { self.instances.acquire() }
    }

    fn note_fused(&mut self, now: Instant, instance: usize, requests: usize, rows: u64) {
        let left = self.scheduler.waiting();
        self.journal.note(now, Decision::Took { instance, requests, rows, left, why: Why::Fused });
    }

    fn finish(&mut self, now: Instant, instance: usize) -> Effect {
        self.leave_watch(instance);
        self.instances.release(instance);
        self.attend(now)
    }

    fn put_back(&mut self, now: Instant, works: &mut dyn DoubleEndedIterator<Item = W>) -> Effect {
        let before = self.scheduler.waiting();
        self.scheduler.put_back(now, works);
        let requests = self.scheduler.waiting() - before;
        if requests > 0 {
            self.journal.note(now, Decision::PutBack { requests });
        }
        self.attend(now)
    }

    fn caller_left(&mut self, now: Instant) -> Effect {
        self.scheduler.caller_left(now);
        self.attend(now)
    }

    fn expire(&mut self, now: Instant) -> Effect {
        self.alarm = None;
        self.scheduler.expire(now);
        self.attend(now)
    }

    fn aftermath(&mut self, now: Instant) -> Option<Aftermath<W>> {
        let sooner = |moment: &Instant| self.alarm.is_none_or(|alarm| *moment < alarm);
        let alarm = self.scheduler.deadline().filter(sooner);
        if alarm.is_none() && self.scheduler.refused().is_empty() {
            return None;
        }
        self.alarm = alarm.or(self.alarm);
        let refused = std::mem::take(self.scheduler.refused());
        self.note_refused(now, &refused);
        Some(Aftermath { refused, alarm, conflicts: Vec::new() })
    }

    fn cancel(&mut self, now: Instant, pick: &mut dyn FnMut(&W) -> bool, removed: &mut Vec<W>) -> Effect {
        let before = removed.len();
        self.scheduler.remove_where(pick, removed);
        if removed.len() > before {
            self.journal.note(now, Decision::Withdrew { requests: removed.len() - before });
        }
        self.attend(now)
    }

    fn stop(&mut self, now: Instant) -> Effect {
        self.scheduler.stop();
        self.journal.note(now, Decision::Stopped);
        self.attend(now)
    }

    fn rearrange(&mut self, now: Instant, instances: &[usize]) -> Effect {
        self.instances.rearrange(instances);
        self.journal.note(now, Decision::Rearranged { instances: instances.len() });
        if let Some(waiter) = self.waiter.take_if(|waiter| self.instances.is_retired(waiter.instance)) {
            // It is told to go when it asks, and another one is started then.
            return Effect::Wake(waiter.instance);
        }
        self.attend(now)
    }

    fn set_batching(&mut self, now: Instant, batching: Batching) -> Effect {
        if self.scheduler.set_batching(batching) { self.attend(now) } else { Effect::None }
    }

    fn is_free(&self, instance: usize) -> bool {
        self.instances.is_free(instance)
    }

    fn waiting(&self) -> usize {
        self.scheduler.waiting()
    }

    fn explain(&mut self, now: Instant) -> Explanation {
        let (outlook, instances) = (self.scheduler.outlook(now), self.instances.count());
        let busy = self.instances.claimed() - usize::from(self.waiter.is_some());
        Explanation {
            waiting: self.scheduler.waiting(),
            instances,
            busy,
            outlook,
            hold: self.hold(now, outlook),
            decisions: self.journal.decisions(),
        }
    }

    fn look(&self, see: &mut dyn FnMut(&W) -> ControlFlow<()>) {
        self.scheduler.look(see);
    }

    fn look_at_heads(&self, see: &mut dyn FnMut(&W)) {
        self.scheduler.look_at_heads(see);
    }

    fn is_quiet(&self) -> bool {
        self.scheduler.waiting() == 0 && self.instances.claimed() == 0
    }
}

impl<W: Work> ModelQueue<W> {
    /// Sees to it that an instance comes for the requests that wait: the waiter in time, else an idle instance, else
    /// one that is busy now.
    fn attend(&mut self, now: Instant) -> Effect {
        if self.waiter.is_none() && !self.instances.is_any_idle() {
            // The first instance that is done looks at the requests that wait; until then nothing is gained by looking.
            return Effect::None;
        }
        match (&self.waiter, self.scheduler.due(now)) {
            (Some(waiter), Some(due)) if due >= waiter.until => Effect::None,
            (&Some(Waiter { instance, .. }), _) => {
                // It no longer sleeps until a known moment, so the next arrival must not count on it.
                self.waiter = None;
                Effect::Wake(instance)
            }
            (None, Some(_)) => self.instances.acquire().map_or(Effect::None, Effect::Start),
            (None, None) => Effect::None,
        }
    }

    fn hold(&self, now: Instant, outlook: Option<Outlook>) -> Hold {
        match outlook {
            None if self.scheduler.waiting() > 0 => Hold::Start,
            None => Hold::Nothing,
            Some(_) if self.instances.count() == 0 => Hold::NoInstance,
            Some(Outlook { due, .. }) if due > now => Hold::Company,
            Some(_) if self.instances.idle() == 0 && self.waiter.is_none() => Hold::Busy,
            Some(_) => Hold::Coming,
        }
    }

    fn note_batch(&mut self, now: Instant, instance: usize, batch: &[W], outlook: Option<Outlook>) {
        let Some(Outlook { why, .. }) = outlook else { return };
        let rows = batch.iter().map(|work| u64::from(work.rows().max(1))).sum();
        let (requests, left) = (batch.len(), self.scheduler.waiting());
        self.journal.note(now, Decision::Took { instance, requests, rows, left, why });
    }

    fn note_refused(&mut self, now: Instant, refused: &[Refused<W>]) {
        for Refused { reason, .. } in refused {
            let requests = 1;
            self.journal.note(
                now,
                match reason {
                    Reason::Cancelled => Decision::Withdrew { requests },
                    Reason::Expired => Decision::Expired { requests },
                    _ => Decision::Refused { requests },
                },
            );
        }
    }

    fn leave_watch(&mut self, instance: usize) {
        if self.waiter.as_ref().is_some_and(|waiter| waiter.instance == instance) {
            self.waiter = None;
        }
    }
}
