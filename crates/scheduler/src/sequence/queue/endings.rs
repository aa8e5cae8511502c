//! Sequences that end: in their turn, before their time, and with what waits of them.

use std::time::Instant;

use super::SequenceQueue;
use crate::sequence::lineup::Lineup;
use crate::sequence::table::Place;
use crate::work::{Reason, Refused, SlotId, Work};

impl<W: Work> SequenceQueue<W> {
    /// Takes out what `pick` names, and with it the rest of its sequence.
    pub(super) fn remove_where(&mut self, now: Instant, mut pick: impl FnMut(&W) -> bool, mut removed: impl FnMut(W)) {
        let mut doomed = Vec::new();
        for entry in &mut self.instances {
            let Lineup::Oldest(dynamic) = &mut entry.lineup else { continue };
            let occupants = &entry.occupants;
            dynamic.remove_where(&mut pick, |work| {
                doomed.extend(occupants[work.slot_id().slot as usize]);
                removed(work);
            });
        }
        self.waiting -= doomed.len();
        for key in doomed {
            self.table.get(key).out = false;
            self.cut(now, key, &mut removed);
        }
        for key in self.table.keys() {
            let first = self.table.get(key).waiting.iter().position(|waiting| pick(&waiting.work));
            match first {
                Some(0) if !self.table.get(key).out => self.cut(now, key, &mut removed),
                Some(first) => self.cut_behind(key, first, &mut removed),
                None => {}
            }
        }
    }

    /// Hands out what waits of a sequence from a position on; what comes before it is still right and is the last of
    /// it.
    pub(super) fn cut_behind(&mut self, key: usize, position: usize, hand_out: &mut impl FnMut(W)) {
        self.table.close(key);
        let sequence = self.table.get(key);
        let rest = sequence.waiting.split_off(position);
        sequence.over = sequence.out && sequence.waiting.is_empty();
        self.waiting -= rest.len();
        rest.into_iter().for_each(|waiting| hand_out(waiting.work));
    }

    /// Refuses requests whose callers have gone.
    pub(super) fn sweep(&mut self, now: Instant) {
        (self.gone, self.sweep_at) = (0, None);
        let mut refused = std::mem::take(&mut self.refused);
        self.remove_where(now, W::is_cancelled, |work| {
            let reason = if work.is_cancelled() { Reason::Cancelled } else { Reason::Interrupted };
            refused.push(Refused { work, reason });
        });
        self.refused = refused;
    }

    /// Ends a sequence before its time and gives back what waits of it.
    pub(super) fn give_back(&mut self, now: Instant, key: usize, reason: Reason) {
        let mut refused = std::mem::take(&mut self.refused);
        self.cut(now, key, |work| refused.push(Refused { work, reason }));
        self.refused = refused;
    }

    /// Ends a sequence before its time: what waits of it is handed out, and it leaves its place at once, or when what
    /// runs of it is done.
    pub(super) fn cut(&mut self, now: Instant, key: usize, mut hand_out: impl FnMut(W)) {
        self.table.close(key);
        self.table.wake(key);
        let sequence = self.table.get(key);
        let (place, out) = (sequence.place, sequence.out);
        let rest = std::mem::take(&mut sequence.waiting);
        let mut left = rest.len();
        if let Place::Slot(slot_id) = place {
            let stood = self.leave_line(slot_id, out, &mut hand_out);
            left += stood;
            let sequence = self.table.get(key);
            sequence.out = out && stood == 0;
            sequence.over = sequence.out;
        }
        rest.into_iter().for_each(|waiting| hand_out(waiting.work));
        self.waiting -= left;
        match place {
            Place::Backlog(ticket) => {
                self.backlog.leave(&ticket);
                self.table.remove(key);
            }
            Place::Slot(_) if self.table.get(key).over => {}
            Place::Slot(_) => self.vacate(now, key),
        }
    }

    /// Removes what waits for a slot, and returns the number of those requests.
    pub(super) fn leave_line(&mut self, slot_id: SlotId, out: bool, hand_out: &mut impl FnMut(W)) -> usize {
        match &mut self.entry(slot_id).lineup {
            Lineup::Direct(slots) => {
                slots.clear(slot_id.slot);
                0
            }
            Lineup::Oldest(_) if !out => 0,
            Lineup::Oldest(dynamic) => {
                let mut stood = Vec::new();
                dynamic.remove_where(|work| work.slot_id().slot == slot_id.slot, |work| stood.push(work));
                let count = stood.len();
                stood.into_iter().for_each(hand_out);
                count
            }
        }
    }

    /// A sequence of which nothing waits or runs leaves its slot, which goes to the next of the backlog.
    pub(super) fn vacate(&mut self, now: Instant, key: usize) {
        let gone = self.table.remove(key);
        debug_assert!(gone.waiting.is_empty(), "a sequence leaves when nothing of it waits");
        let Place::Slot(slot_id) = gone.place else { return };
        let entry = self.entry(slot_id);
        entry.occupants[slot_id.slot as usize] = None;
        if entry.retired {
            return;
        }
        match self.backlog.first() {
            Some(next) => self.occupy(now, next, slot_id),
            None => self.free_slots.give_back(slot_id),
        }
    }
}
