//! The slots that no sequence has.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::work::SlotId;

/// Free slots. The lowest is given first, so that sequences spread over the instances and batches stay dense.
#[derive(Debug, Default)]
pub(super) struct FreeSlots {
    free: BinaryHeap<Reverse<(u32, u32)>>,
}

impl FreeSlots {
    pub(super) fn give_back(&mut self, slot_id: SlotId) {
        self.free.push(Reverse((slot_id.slot, slot_id.instance)));
    }

    pub(super) fn take(&mut self) -> Option<SlotId> {
        self.free.pop().map(|Reverse((slot, instance))| SlotId { instance, slot })
    }

    /// Every slot of an instance that comes into service.
    pub(super) fn add(&mut self, instance: usize, slots: usize) {
        (0..slots as u32).for_each(|slot| self.give_back(SlotId { instance: instance as u32, slot }));
    }

    /// The slots of an instance that goes out of service.
    pub(super) fn remove(&mut self, instance: usize) {
        self.free.retain(|Reverse((_, other))| *other as usize != instance);
    }
}
