//! Instances that come into service and leave it.

use std::time::Instant;

use super::SequenceQueue;
use crate::model_queue::Effect;
use crate::sequence::instance::Instance;
use crate::why::Decision;
use crate::work::{Reason, SlotId, Work};

impl<W: Work> SequenceQueue<W> {
    /// Puts these instances into service, and no others.
    pub(super) fn put_into_service(&mut self, now: Instant, instances: &[usize]) -> Effect {
        self.journal.note(now, Decision::Rearranged { instances: instances.len() });
        let numbers = instances.iter().map(|number| number + 1).max().unwrap_or(0);
        for number in self.instances.len()..numbers {
            self.instances.push(Instance::new(&self.policy));
            self.instances[number].retired = true;
        }
        for instance in 0..self.instances.len() {
            match (instances.contains(&instance), self.instances[instance].retired) {
                (true, true) => self.enlist(instance),
                (false, false) => self.retire(now, instance),
                _ => {}
            }
        }
        while let Some(key) = self.backlog.first() {
            let Some(slot_id) = self.free_slots.take() else { break };
            self.occupy(now, key, slot_id);
        }
        self.attend(now)
    }

    pub(super) fn enlist(&mut self, instance: usize) {
        self.instances[instance].retired = false;
        for (slot, sequence) in (0..).zip(&self.instances[instance].occupants) {
            // One that finishes here still has its slot until then.
            if sequence.is_none() {
                self.free_slots.give_back(SlotId { instance: instance as u32, slot });
            }
        }
    }

    pub(super) fn retire(&mut self, now: Instant, instance: usize) {
        self.instances[instance].retired = true;
        self.free_slots.remove(instance);
        for key in self.in_slots(instance) {
            self.give_back(now, key, Reason::InstanceGone);
        }
        self.rouse(instance);
    }
}
