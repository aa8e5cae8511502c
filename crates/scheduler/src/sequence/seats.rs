//! The slots that no sequence has.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::work::Seat;

/// Free slots. The lowest is given first, so that sequences spread over the instances and batches stay dense.
#[derive(Debug, Default)]
pub(super) struct Seats {
    free: BinaryHeap<Reverse<(u32, u32)>>,
}

impl Seats {
    pub(super) fn give_back(&mut self, seat: Seat) {
        self.free.push(Reverse((seat.slot, seat.instance)));
    }

    pub(super) fn take(&mut self) -> Option<Seat> {
        self.free.pop().map(|Reverse((slot, instance))| Seat { instance, slot })
    }

    /// Every slot of an instance that comes into service.
    pub(super) fn add(&mut self, instance: usize, slots: usize) {
        (0..slots as u32).for_each(|slot| self.give_back(Seat { instance: instance as u32, slot }));
    }

    /// The slots of an instance that goes out of service.
    pub(super) fn remove(&mut self, instance: usize) {
        self.free.retain(|Reverse((_, other))| *other as usize != instance);
    }
}
