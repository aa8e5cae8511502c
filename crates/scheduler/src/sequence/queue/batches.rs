//! What an instance runs next, what it ran before, and what it gives back.

use std::time::Instant;

use super::{SequenceQueue, context};
use crate::sequence::instance::Instance;
use crate::sequence::lineup::Lineup;
use crate::why::{Decision, Outlook, Why};
use crate::work::{Reason, Refused, SlotId, Waiting, Work};

impl<W: Work> SequenceQueue<W> {
    /// What an instance ran is done: those sequences go on, fall silent or leave.
    pub(super) fn settle(&mut self, now: Instant, instance: usize) {
        let mut running = std::mem::take(&mut self.instances[instance].running);
        for key in running.drain(..) {
            let sequence = self.table.get(key);
            sequence.out = false;
            if sequence.over {
                self.vacate(now, key);
            } else if sequence.waiting.is_empty() {
                self.table.fall_silent(key, now);
            } else {
                self.advance(now, key);
            }
        }
        self.instances[instance].running = running;
    }

    /// What an instance would run if nothing else arrives, and when.
    pub(super) fn outlook(&mut self, now: Instant, instance: usize) -> Option<Outlook> {
        let due = self.due(now, instance)?;
        if let Lineup::Oldest(dynamic) = &mut self.instances[instance].lineup {
            return dynamic.outlook(&mut context(now, self.stopping, &mut self.refused));
        }
        let Lineup::Direct(slots) = &self.instances[instance].lineup else { return None };
        let why = if due > now { Why::Company } else { Why::NoDelay };
        Some(Outlook { due, requests: slots.count(), why })
    }

    /// When an instance has a batch to run if nothing else arrives: at `now` or before if at once.
    pub(super) fn due(&mut self, now: Instant, instance: usize) -> Option<Instant> {
        if self.holding {
            return None;
        }
        match &mut self.instances[instance].lineup {
            Lineup::Oldest(dynamic) => {
                dynamic.outlook(&mut context(now, self.stopping, &mut self.refused)).map(|outlook| outlook.due)
            }
            Lineup::Direct(slots) if slots.is_empty() => None,
            Lineup::Direct(slots) => match slots.delay().filter(|_| !self.stopping) {
                Some(delay) => self.oldest(instance).map(|entered| entered + delay),
                None => Some(now),
            },
        }
    }

    /// When the oldest of the requests arrived that an instance could run now.
    pub(super) fn oldest(&mut self, instance: usize) -> Option<Instant> {
        let entry = &self.instances[instance];
        let Lineup::Direct(slots) = &entry.lineup else { return None };
        let mut oldest = None;
        let mut from = 0;
        while let Some(slot) = slots.from(from) {
            from = slot + 1;
            let entered =
                entry.occupants[slot as usize].and_then(|key| self.table.get(key).waiting.front().map(|w| w.entered));
            oldest = [oldest, entered].into_iter().flatten().min();
        }
        oldest
    }

    pub(super) fn take(&mut self, now: Instant, instance: usize, batch: &mut Vec<W>) {
        let before = batch.len();
        let why = self.outlook(now, instance).map_or(Why::Alone, |outlook| outlook.why);
        match &mut self.instances[instance].lineup {
            Lineup::Direct(_) => self.take_rows(instance, batch),
            Lineup::Oldest(dynamic) => {
                dynamic.next(&mut context(now, self.stopping, &mut self.refused), batch);
                let Instance { occupants, running, .. } = &mut self.instances[instance];
                running.extend(batch[before..].iter().filter_map(|work| occupants[work.slot_id().slot as usize]));
            }
        }
        let requests = batch.len() - before;
        self.waiting -= requests;
        let (rows, left) = (requests as u64, self.waiting);
        self.journal.note(now, Decision::Took { instance, requests, rows, left, why });
        for &key in &self.instances[instance].running {
            // Where nothing more can come, that was its last request.
            let over = self.table.is_complete(key);
            self.table.get(key).over = over;
        }
    }

    /// The next requests of the sequences that are ready, by slot, as far as they agree with the first.
    pub(super) fn take_rows(&mut self, instance: usize, batch: &mut Vec<W>) {
        let Instance { occupants, lineup, running, .. } = &mut self.instances[instance];
        let Lineup::Direct(slots) = lineup else { return };
        let mut agreed = None;
        let mut from = 0;
        while let Some(slot) = slots.from(from) {
            from = slot + 1;
            let Some(key) = occupants[slot as usize] else { continue };
            let sequence = self.table.get(key);
            let Some(head) = sequence.waiting.front() else { continue };
            if *agreed.get_or_insert(head.work.key()) != head.work.key() {
                continue;
            }
            slots.clear(slot);
            if let Some(Waiting { mut work, .. }) = sequence.waiting.pop_front() {
                sequence.out = true;
                work.assign_slot(SlotId { instance: instance as u32, slot });
                batch.push(work);
                running.push(key);
            }
        }
    }

    pub(super) fn take_back(&mut self, now: Instant, work: W) {
        let slot_id = work.slot_id();
        let entry = &mut self.instances[slot_id.instance as usize];
        let Some(key) = entry.occupants[slot_id.slot as usize] else { return };
        entry.running.retain(|&other| other != key);
        if entry.retired {
            self.table.get(key).out = false;
            self.vacate(now, key);
            return self.refused.push(Refused { work, reason: Reason::InstanceGone });
        }
        let sequence = self.table.get(key);
        sequence.over = false;
        self.waiting += 1;
        match &mut entry.lineup {
            Lineup::Oldest(dynamic) => dynamic.put_back(now, std::iter::once(work)),
            Lineup::Direct(slots) => {
                sequence.out = false;
                sequence.waiting.push_front(Waiting { entered: now, watch: None, work });
                slots.set(slot_id.slot);
            }
        }
        self.rouse(slot_id.instance as usize);
    }
}
