//! A queue of sequences with its instances, moved by the test: it watches that the promises to sequences are kept.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use alipes_scheduler::sequence::{SequencePolicy, SequenceQueue, Strategy};
use alipes_scheduler::{
    Aftermath, DynamicPolicy, Effect, Membership, Next, Queue, Reason, Refused, SequenceId, SlotId, Work,
};

use super::stage::{Place, carry_out};
use super::{ms, zero};

/// One request of a sequence; `id` grows with each that is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    pub id: usize,
    pub sequence: u64,
    pub start: bool,
    pub end: bool,
    pub timeout: Duration,
    pub key: u64,
    pub slot_id: SlotId,
    /// The request that began what it belongs to; filled in when it is submitted.
    pub began: usize,
}

thread_local! {
    /// Requests whose callers have gone; numbers begin anew with each hall.
    static GONE: RefCell<BTreeSet<usize>> = const { RefCell::new(BTreeSet::new()) };
}

impl Work for Step {
    fn is_cancelled(&self) -> bool {
        GONE.with_borrow(|gone| gone.contains(&self.id))
    }

    fn rows(&self) -> u32 {
        1
    }

    fn key(&self) -> u64 {
        self.key
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn set_deadline(&mut self, _: Option<Instant>) {
        unreachable!("no policy here has a time-out");
    }

    fn sequence_id(&self) -> Option<SequenceId> {
        (self.sequence > 0).then_some(SequenceId::Number(self.sequence))
    }

    fn membership(&self) -> Membership {
        Membership { start: self.start, end: self.end }
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn assign_slot(&mut self, slot_id: SlotId) {
        self.slot_id = slot_id;
    }

    fn slot_id(&self) -> SlotId {
        self.slot_id
    }
}

pub fn direct(slots: u32) -> SequencePolicy {
    policy(Strategy::Direct { slots, max_queue_delay: Duration::ZERO, minimum_slot_utilization: 0.0 })
}

pub fn oldest(candidates: u32, max_batch_size: u32) -> SequencePolicy {
    let batching = DynamicPolicy { max_batch_size, ..DynamicPolicy::default() };
    policy(Strategy::Oldest { max_candidate_sequences: candidates, batching })
}

pub fn policy(strategy: Strategy) -> SequencePolicy {
    SequencePolicy { strategy, max_idle: ms(1000), hold: Default::default() }
}

pub struct Hall {
    pub queue: SequenceQueue<Step>,
    pub places: Vec<Place>,
    /// Each batch: when, by whom, and what.
    pub executed: Vec<(Duration, usize, Vec<Step>)>,
    pub now: Instant,
    /// What came out without having been executed, and why.
    pub dropped: Vec<(usize, Option<Reason>)>,
    /// Sequences that began anew before they had ended.
    pub conflicts: Vec<SequenceId>,
    /// When the queue is to be asked again.
    pub alarm: Option<Instant>,
    start: Instant,
    compute: Duration,
    made: usize,
    inside: BTreeSet<usize>,
    /// By instance: what runs.
    running: BTreeMap<usize, Vec<Step>>,
    /// By sequence id: the last request that began one.
    began: BTreeMap<u64, usize>,
    /// By the request that began a sequence: the last one that was executed, and where.
    last: BTreeMap<usize, (usize, SlotId)>,
}

impl Hall {
    pub fn new(policy: SequencePolicy, instances: usize, compute: Duration) -> Hall {
        let now = zero();
        GONE.with_borrow_mut(BTreeSet::clear);
        Hall {
            queue: SequenceQueue::new(policy, instances),
            places: vec![Place::Idle; instances],
            executed: Vec::new(),
            now,
            dropped: Vec::new(),
            conflicts: Vec::new(),
            alarm: None,
            start: now,
            compute,
            made: 0,
            inside: BTreeSet::new(),
            running: BTreeMap::new(),
            began: BTreeMap::new(),
            last: BTreeMap::new(),
        }
    }

    /// Submits the next request of a sequence; gives its number, or why it was refused.
    pub fn submit(&mut self, sequence: u64, start: bool, end: bool) -> Result<usize, Reason> {
        self.submit_step(Step { sequence, start, end, ..Step::default() })
    }

    pub fn submit_step(&mut self, step: Step) -> Result<usize, Reason> {
        let id = self.made;
        self.made += 1;
        let began = if step.start { id } else { self.began.get(&step.sequence).copied().unwrap_or(id) };
        let effect = self.queue.submit(self.now, Step { id, began, ..step }).map_err(|refused| refused.reason)?;
        self.began.insert(step.sequence, began);
        self.inside.insert(id);
        self.carry_out(effect);
        Ok(id)
    }

    pub fn stop(&mut self) {
        let effect = self.queue.stop(self.now);
        self.carry_out(effect);
    }

    pub fn cancel(&mut self, id: usize) {
        let mut removed = Vec::new();
        let effect = self.queue.cancel(self.now, &mut |step| step.id == id, &mut removed);
        removed.into_iter().for_each(|step| self.drop(step.id, None));
        self.carry_out(effect);
    }

    /// The caller of a request has gone.
    pub fn leave(&mut self, id: usize) {
        GONE.with_borrow_mut(|gone| gone.insert(id));
        let effect = self.queue.caller_left(self.now);
        self.carry_out(effect);
    }

    pub fn lose(&mut self, instance: usize) {
        let mut removed = Vec::new();
        let effect = self.queue.lose(self.now, instance, &mut removed);
        removed.into_iter().for_each(|step| self.drop(step.id, None));
        self.carry_out(effect);
    }

    pub fn rearrange(&mut self, instances: &[usize]) {
        let numbers = instances.iter().map(|number| number + 1).max().unwrap_or(0);
        self.places.resize(numbers.max(self.places.len()), Place::Idle);
        let effect = self.queue.rearrange(self.now, instances);
        self.carry_out(effect);
    }

    /// The alarm goes off.
    pub fn expire(&mut self) {
        self.alarm = None;
        let effect = self.queue.expire(self.now);
        self.carry_out(effect);
    }

    /// Moves the clock, stopping at each moment in between at which something happens.
    pub fn run_until(&mut self, offset: Duration) {
        self.settle();
        while let Some(moment) = self.next_moment().filter(|&moment| moment <= self.start + offset) {
            self.now = self.now.max(moment);
            if self.alarm.is_some_and(|alarm| alarm <= self.now) {
                self.expire();
            }
            self.settle();
        }
        self.now = self.start + offset;
    }

    pub fn next_moment(&self) -> Option<Instant> {
        let moment = |place: &Place| match place {
            Place::Sleeping(moment) | Place::RunningUntil(moment) => Some(*moment),
            Place::Coming => Some(self.now),
            Place::Idle => None,
        };
        self.places.iter().filter_map(moment).chain(self.alarm).min()
    }

    /// Lets every instance move until none can at this moment.
    pub fn settle(&mut self) {
        while let Some(instance) = (0..self.places.len()).find(|&instance| self.can_move(instance)) {
            self.ask(instance);
        }
    }

    pub fn can_move(&self, instance: usize) -> bool {
        match self.places[instance] {
            Place::Idle => false,
            Place::Coming => true,
            Place::Sleeping(moment) | Place::RunningUntil(moment) => moment <= self.now,
        }
    }

    /// The instance is done with what it runs, and asks for more.
    pub fn ask(&mut self, instance: usize) {
        self.running.remove(&instance);
        let mut batch = Vec::new();
        let (next, effect) = self.queue.next(self.now, instance, &mut batch);
        self.places[instance] = match next {
            Next::Take => self.take(instance, batch),
            Next::WaitUntil(moment) => Place::Sleeping(moment),
            Next::Idle => Place::Idle,
        };
        self.carry_out(effect);
    }

    /// The instance is done with what it runs, and gives itself back.
    pub fn finish(&mut self, instance: usize) {
        self.running.remove(&instance);
        self.places[instance] = Place::Idle;
        let effect = self.queue.finish(self.now, instance);
        self.carry_out(effect);
    }

    /// What the instance runs goes back into the queue, unexecuted.
    pub fn put_back(&mut self, instance: usize) {
        let steps = self.running.remove(&instance).unwrap_or_default();
        for step in &steps {
            assert!(self.inside.insert(step.id));
            self.last.remove(&step.began);
        }
        let effect = self.queue.put_back(self.now, &mut steps.into_iter());
        self.carry_out(effect);
        self.ask(instance);
    }

    /// The numbers of the requests of each batch.
    pub fn batches(&self) -> Vec<Vec<usize>> {
        self.executed.iter().map(|(_, _, batch)| batch.iter().map(|step| step.id).collect()).collect()
    }

    /// Requests that are neither executed nor given back.
    pub fn inside(&self) -> usize {
        self.inside.len()
    }

    fn take(&mut self, instance: usize, batch: Vec<Step>) -> Place {
        assert!(!batch.is_empty(), "a batch has requests");
        let mut slots = BTreeSet::new();
        for step in &batch {
            assert!(self.inside.remove(&step.id), "{step:?} came out twice");
            assert_eq!(step.slot_id.instance as usize, instance, "a sequence runs where its slot is");
            assert!(slots.insert(step.slot_id.slot), "two sequences have one slot");
            assert_eq!(step.key, batch[0].key, "what runs together agrees");
            let busy = self.running.values().flatten().any(|other| other.began == step.began);
            assert!(!busy, "two requests of one sequence run at a time");
            if let Some((before, slot_id)) = self.last.insert(step.began, (step.id, step.slot_id)) {
                assert!(before < step.id, "a sequence keeps its order");
                assert_eq!(slot_id, step.slot_id, "a sequence keeps its slot");
            }
        }
        self.executed.push((self.now - self.start, instance, batch.clone()));
        self.running.insert(instance, batch);
        Place::RunningUntil(self.now + self.compute)
    }

    fn drop(&mut self, id: usize, reason: Option<Reason>) {
        assert!(self.inside.remove(&id), "request {id} came out twice");
        self.dropped.push((id, reason));
    }

    /// Carries out what a transition asked for, and sees to what it left behind.
    fn carry_out(&mut self, effect: Effect) {
        if let Some(Aftermath { refused, alarm, conflicts }) = self.queue.aftermath(self.now) {
            self.alarm = alarm.or(self.alarm);
            self.conflicts.extend(conflicts);
            refused.into_iter().for_each(|Refused { work, reason }| self.drop(work.id, Some(reason)));
        }
        carry_out(&mut self.places, effect);
    }
}
