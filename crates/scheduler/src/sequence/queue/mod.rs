//! The sequences, the backlog and the instances of one version of a model, as one state machine.
//!
//! What keeps a wake-up from being lost: whenever an instance that idles or sleeps may have something to do, it is
//! *roused*, and every transition starts or wakes one of those who are. The one that was started asks for work, which
//! is such a transition, so that the next is started then, until none is left. A busy instance is not roused: it asks.

mod batches;
mod endings;
mod explain;
mod instances;

use std::ops::ControlFlow;
use std::time::Instant;

use super::backlog::Backlog;
use super::free_slots::FreeSlots;
use super::instance::{Doing, Instance};
use super::lineup::Lineup;
use super::policy::{self, SequencePolicy};
use super::table::{Place, Table};
use crate::dynamic::Dynamic;
use crate::journal::Journal;
use crate::model_queue::{Aftermath, Effect};
use crate::queue::Queue;
use crate::scheduler::{Context, GONE_SHARE, Next, sweep_at};
use crate::why::{Decision, Explanation};
use crate::work::{Reason, Refused, SequenceId, SlotId, Waiting, Work};

/// What waits for one version of a model whose requests come in sequences, and which instances come for it.
///
/// Every request that was taken in comes out exactly once: in a batch, by [`cancel`](Queue::cancel) or
/// [`lose`](Queue::lose), or in the [`Aftermath`].
#[derive(Debug)]
pub struct SequenceQueue<W> {
    policy: SequencePolicy,
    table: Table<W>,
    instances: Vec<Instance<W>>,
    free_slots: FreeSlots,
    backlog: Backlog,
    /// Instances to be looked at.
    roused: Vec<usize>,
    /// Requests that will not be executed, for the owner to take out.
    refused: Vec<Refused<W>>,
    /// The moment for which the owner knows to call [`expire`](Queue::expire).
    alarm: Option<Instant>,
    waiting: usize,
    /// Callers that have gone since those who wait were last looked through.
    gone: usize,
    /// When those who wait are looked through at the latest.
    sweep_at: Option<Instant>,
    /// Sequences that began anew although they had not ended, for the owner to take out.
    conflicts: Vec<SequenceId>,
    journal: Journal,
    holding: bool,
    stopping: bool,
}

impl<W: Work> SequenceQueue<W> {
    /// A queue for `instances` instances, all idle.
    ///
    /// # Panics
    /// If there is no instance: nobody would ever come for a request.
    pub fn new(policy: SequencePolicy, instances: usize) -> Self {
        assert!(instances > 0, "a model has at least one instance");
        let policy = policy.bounded();
        let holding = policy.hold != policy::StartThreshold::default();
        let mut free_slots = FreeSlots::default();
        let slots = policy.slots();
        (0..instances).for_each(|instance| free_slots.add(instance, slots));
        SequenceQueue {
            instances: (0..instances).map(|_| Instance::new(&policy)).collect(),
            policy,
            table: Table::default(),
            free_slots,
            backlog: Backlog::default(),
            roused: Vec::new(),
            refused: Vec::new(),
            alarm: None,
            waiting: 0,
            gone: 0,
            sweep_at: None,
            conflicts: Vec::new(),
            journal: Journal::default(),
            holding,
            stopping: false,
        }
    }

    /// Sequences that have a slot or wait for one.
    pub fn live(&self) -> usize {
        self.table.len()
    }
}

impl<W: Work> Queue<W> for SequenceQueue<W> {
    /// Takes a request in, behind the others of its sequence.
    ///
    /// # Errors
    /// The request comes back if it belongs to no sequence that goes on and does not start one, and after
    /// [`stop`](Queue::stop) if it starts one.
    fn submit(&mut self, now: Instant, work: W) -> Result<Effect, Refused<W>> {
        let membership = work.membership();
        if membership.start && self.stopping {
            return Err(Refused { work, reason: Reason::Stopping });
        }
        let id = work.sequence_id();
        let known = id.as_ref().and_then(|id| self.table.find(id));
        let timeout = work.timeout();
        let expires = (!timeout.is_zero()).then(|| now.checked_add(timeout)).flatten();
        let key = match known {
            Some(key) => {
                if membership.start {
                    self.conflicts.extend(id);
                }
                key
            }
            None if membership.start => {
                let slot_id = self.free_slots.take();
                let key = self.table.open(id, Place::Slot(slot_id.unwrap_or_default()));
                match slot_id {
                    Some(slot_id) => self.entry(slot_id).occupants[slot_id.slot as usize] = Some(key),
                    None => self.table.get(key).place = Place::Backlog(self.backlog.join(key, None)),
                }
                key
            }
            None => return Err(Refused { work, reason: Reason::NotStarted }),
        };
        let sequence = self.table.get(key);
        if let Place::Backlog(ticket) = &mut sequence.place {
            self.backlog.hurry(ticket, expires);
        }
        sequence.waiting.push_back(Waiting { entered: now, watch: None, work });
        self.waiting += 1;
        if membership.end {
            self.table.close(key);
        }
        self.advance(now, key);
        self.stop_holding();
        Ok(self.attend(now))
    }

    /// Work for `instance`, which the caller has claimed through [`Effect::Start`] and drives; what it ran before is
    /// done.
    ///
    /// As [`Queue::next`]. Where each sequence has a row of its own, the batch is in the
    /// order of the slots, which may have gaps.
    fn next(&mut self, now: Instant, instance: usize, batch: &mut Vec<W>) -> (Next, Effect) {
        self.settle(now, instance);
        if self.gone > 0 {
            self.sweep(now);
        }
        let due = if self.instances[instance].retired { None } else { self.due(now, instance) };
        let next = match due {
            Some(due) if due <= now => {
                self.take(now, instance, batch);
                Next::Take
            }
            Some(due) => Next::WaitUntil(due),
            None => Next::Idle,
        };
        self.instances[instance].doing = match next {
            Next::Take => Doing::Busy,
            Next::WaitUntil(moment) => Doing::Sleeping(moment),
            Next::Idle => Doing::Idle,
        };
        (next, self.attend(now))
    }

    /// Gives `instance` back without asking for more; what it ran before is done.
    fn finish(&mut self, now: Instant, instance: usize) -> Effect {
        self.settle(now, instance);
        self.instances[instance].doing = Doing::Idle;
        self.rouse(instance);
        self.attend(now)
    }

    /// Takes requests back that were taken but not executed. Each is the next of its sequence again.
    fn put_back(&mut self, now: Instant, works: &mut dyn DoubleEndedIterator<Item = W>) -> Effect {
        works.rev().for_each(|work| self.take_back(now, work));
        self.attend(now)
    }

    /// A caller has gone: what it asked for is given back, and with it what waits behind it in its sequence, without
    /// which the state would be wrong. That happens at once where few wait, else before the next batch, and at the
    /// latest within a microsecond for each that waits.
    fn caller_left(&mut self, now: Instant) -> Effect {
        self.gone += 1;
        if self.waiting <= GONE_SHARE * self.gone {
            self.sweep(now);
        } else {
            self.sweep_at.get_or_insert(sweep_at(now, self.waiting));
        }
        self.attend(now)
    }

    /// Takes the waiting requests that `pick` names out, and with each those that wait behind it in its sequence. That
    /// sequence is over.
    fn cancel(&mut self, now: Instant, pick: &mut dyn FnMut(&W) -> bool, removed: &mut Vec<W>) -> Effect {
        self.remove_where(now, pick, |work| removed.push(work));
        self.attend(now)
    }

    /// What an instance knew of its sequences is gone, as with a process that has ended. Sequences that have yet to
    /// begin do so; the others are over, and what waits of them is moved into `removed`.
    fn lose(&mut self, now: Instant, instance: usize, removed: &mut Vec<W>) -> Effect {
        for key in self.in_slots(instance) {
            if !self.is_yet_to_begin(now, key) {
                self.cut(now, key, |work| removed.push(work));
            }
        }
        self.attend(now)
    }

    fn knows(&self, id: &SequenceId) -> bool {
        self.table.find(id).is_some()
    }

    /// Refuses sequences that begin from now on; what waits is due at once.
    fn stop(&mut self, now: Instant) -> Effect {
        self.stopping = true;
        self.holding = false;
        self.journal.note(now, Decision::Stopped);
        (0..self.instances.len()).for_each(|instance| self.rouse(instance));
        self.attend(now)
    }

    /// The alarm has gone off: sequences that have been silent for too long are over, and those that found no slot in
    /// time are given back.
    fn expire(&mut self, now: Instant) -> Effect {
        self.alarm = None;
        if self.sweep_at.is_some_and(|moment| moment <= now) {
            self.sweep(now);
        }
        while let Some((key, since)) = self.table.longest_silent() {
            if since + self.policy.max_idle > now {
                break;
            }
            self.vacate(now, key);
        }
        while let Some((moment, key)) = self.backlog.first_expiry() {
            if moment > now {
                break;
            }
            self.give_back(now, key, Reason::BacklogExpired);
        }
        self.attend(now)
    }

    /// What is left to be done after any of the transitions, as [`Queue::aftermath`].
    fn aftermath(&mut self, now: Instant) -> Option<Aftermath<W>> {
        let sooner = |moment: &Instant| self.alarm.is_none_or(|alarm| *moment < alarm);
        let alarm = self.deadline().filter(sooner);
        if alarm.is_none() && self.refused.is_empty() && self.conflicts.is_empty() {
            return None;
        }
        self.alarm = alarm.or(self.alarm);
        self.note_refused(now);
        let (refused, conflicts) = (std::mem::take(&mut self.refused), std::mem::take(&mut self.conflicts));
        Some(Aftermath { refused, alarm, conflicts })
    }

    fn explain(&mut self, now: Instant) -> Explanation {
        self.explanation(now)
    }

    fn look(&self, see: &mut dyn FnMut(&W) -> ControlFlow<()>) {
        let heads = self.instances.iter().flat_map(|index| index.lineup.heads());
        let _ = heads.chain(self.table.waiting()).try_for_each(see);
    }

    fn look_at_heads(&self, see: &mut dyn FnMut(&W)) {
        let heads = self.instances.iter().flat_map(|index| index.lineup.heads());
        heads.chain(self.table.heads()).for_each(see);
    }

    /// The sequences of an instance that is left out are over, and what waits of them is given back.
    fn rearrange(&mut self, now: Instant, instances: &[usize]) -> Effect {
        self.put_into_service(now, instances)
    }

    fn is_free(&self, instance: usize) -> bool {
        self.instances.get(instance).is_none_or(|entry| entry.retired && entry.doing == Doing::Idle)
    }

    fn waiting(&self) -> usize {
        self.waiting
    }

    fn is_quiet(&self) -> bool {
        self.waiting == 0 && self.instances.iter().all(|index| index.doing == Doing::Idle)
    }
}

impl<W: Work> SequenceQueue<W> {
    /// The first moment at which the passing of time alone changes something.
    fn deadline(&self) -> Option<Instant> {
        let silent = self.table.longest_silent().map(|(_, since)| since + self.policy.max_idle);
        let expiry = self.backlog.first_expiry().map(|(moment, _)| moment);
        [silent, expiry, self.sweep_at].into_iter().flatten().min()
    }

    fn entry(&mut self, slot_id: SlotId) -> &mut Instance<W> {
        &mut self.instances[slot_id.instance as usize]
    }

    fn in_slots(&self, instance: usize) -> Vec<usize> {
        self.instances[instance].occupants.iter().flatten().copied().collect()
    }

    /// Whether a sequence has yet to begin: its next request is one that starts it.
    fn is_yet_to_begin(&mut self, now: Instant, key: usize) -> bool {
        let sequence = self.table.get(key);
        let Place::Slot(slot_id) = sequence.place else { return true };
        if !sequence.out {
            return sequence.waiting.front().is_some_and(|waiting| waiting.work.membership().start);
        }
        let Lineup::Oldest(dynamic) = &mut self.instances[slot_id.instance as usize].lineup else { return false };
        // The slot's request in the line goes behind those of other slots: all slots are looked at anew, each in this
        // way.
        let mut stood = Vec::new();
        dynamic.remove_where(|work| work.slot_id() == slot_id, |work| stood.push(work));
        let begins = stood.iter().any(|work| work.membership().start);
        stood.into_iter().for_each(|work| stand_in_line(dynamic, now, work));
        begins
    }

    /// Lets the next request of a sequence stand in line, where it has a slot and nothing of it is out.
    fn advance(&mut self, now: Instant, key: usize) {
        let sequence = self.table.get(key);
        let Place::Slot(slot_id) = sequence.place else { return };
        if sequence.out || sequence.waiting.is_empty() {
            return;
        }
        match &mut self.instances[slot_id.instance as usize].lineup {
            Lineup::Direct(slots) => slots.set(slot_id.slot),
            Lineup::Oldest(dynamic) => {
                let Some(mut waiting) = sequence.waiting.pop_front() else { return };
                sequence.out = true;
                waiting.work.assign_slot(slot_id);
                stand_in_line(dynamic, now, waiting.work);
            }
        }
        self.table.wake(key);
        self.rouse(slot_id.instance as usize);
    }

    fn note_refused(&mut self, now: Instant) {
        let requests = 1;
        for Refused { reason, .. } in &self.refused {
            let decision = match reason {
                Reason::Cancelled | Reason::Interrupted => Decision::Withdrew { requests },
                Reason::BacklogExpired | Reason::Expired => Decision::Expired { requests },
                _ => Decision::Refused { requests },
            };
            self.journal.note(now, decision);
        }
    }

    /// The sequence, which was in the backlog, gets a slot.
    fn occupy(&mut self, now: Instant, key: usize, slot_id: SlotId) {
        if let Place::Backlog(ticket) = self.table.get(key).place {
            self.backlog.leave(&ticket);
        }
        self.table.get(key).place = Place::Slot(slot_id);
        self.entry(slot_id).occupants[slot_id.slot as usize] = Some(key);
        self.advance(now, key);
    }

    fn rouse(&mut self, instance: usize) {
        let entry = &mut self.instances[instance];
        if entry.doing != Doing::Busy && !entry.roused {
            entry.roused = true;
            self.roused.push(instance);
        }
    }

    /// Starts or wakes one of those who are roused and have something to do.
    fn attend(&mut self, now: Instant) -> Effect {
        while let Some(instance) = self.roused.pop() {
            self.instances[instance].roused = false;
            let due = self.due(now, instance);
            let entry = &mut self.instances[instance];
            match (entry.doing, due) {
                (Doing::Sleeping(until), due) if entry.retired || due.is_some_and(|due| due < until) => {
                    entry.doing = Doing::Busy;
                    return Effect::Wake(instance);
                }
                (Doing::Idle, Some(_)) if !entry.retired => {
                    entry.doing = Doing::Busy;
                    return Effect::Start(instance);
                }
                _ => {}
            }
        }
        Effect::None
    }

    /// Enough waits, so everybody may begin.
    fn stop_holding(&mut self) {
        if !self.holding {
            return;
        }
        let (mut in_slots, mut backlog) = (0, 0);
        for key in self.table.keys() {
            let sequence = self.table.get(key);
            let count = sequence.waiting.len() + usize::from(sequence.out);
            match sequence.place {
                Place::Slot(_) => in_slots += count,
                Place::Backlog(_) => backlog += count,
            }
        }
        let policy::StartThreshold { in_slots: enough, backlog: enough_behind } = self.policy.hold;
        if in_slots >= enough && backlog >= enough_behind {
            self.holding = false;
            (0..self.instances.len()).for_each(|instance| self.rouse(instance));
        }
    }
}

/// Nobody is turned away: the lines of sequences have no limits, since a sequence that lost a request would be wrong.
fn stand_in_line<W: Work>(dynamic: &mut Dynamic<W>, now: Instant, work: W) {
    let stands = dynamic.enqueue(now, work);
    debug_assert!(stands.is_ok(), "a line without limits is never full");
}

fn context<W>(now: Instant, stopping: bool, refused: &mut Vec<Refused<W>>) -> Context<'_, W> {
    Context { now, stopping, any_gone: false, refused }
}
