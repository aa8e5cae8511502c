//! Who has which part of a sparse reservation: offsets only, no memory.
//!
//! Sizes are rounded up to classes, four to a doubling. A freed slot is put on its class's shelf and is the next to be
//! taken from it: its pages are the warmest. What lies on shelves costs memory, so [`Arena::drain`] clears them, the
//! owner punches holes there, and [`Arena::restore`] joins the ranges with their neighbours, ready for any class.

use std::collections::BTreeMap;

/// Smallest slot. Frames of small requests fit.
const SMALLEST_BYTES: u64 = 256;

/// Slots beyond this begin on a page, so that a hole takes all of their pages; their sizes are whole pages.
const PAGED_BYTES: u64 = 16 * 1024;

/// Slots from this size are worth a system call of their own when too much lies idle.
const LARGE_BYTES: u64 = 1 << 20;

/// Idle memory that is kept without being asked: a few of the largest usual tensors, and any number of small ones.
const KEEP_BYTES: u64 = 256 << 20;

/// A part of the reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// Where it begins.
    pub offset: u64,
    /// Its length.
    pub len: u64,
}

/// The allocator of a reservation.
#[derive(Debug)]
pub(crate) struct Arena {
    /// Offsets of idle slots, by class; their memory has been used.
    shelves: Vec<Vec<u64>>,
    /// Ranges that belong to no class, never adjacent, by offset; their memory is untouched or punched.
    ranges: BTreeMap<u64, u64>,
    capacity: u64,
    used: u64,
    idle: u64,
}

/// The shelf of a length, and the size of the slots on it.
fn class_of(len: u64) -> Option<(usize, u64)> {
    if len <= SMALLEST_BYTES {
        return Some((0, SMALLEST_BYTES));
    }
    let shift = (len - 1).ilog2() - 2;
    let quarters = ((len - 1) >> shift) + 1;
    let size = quarters.checked_mul(1 << shift)?;
    Some(((shift as usize - 6) * 4 + quarters as usize - 4, size))
}

/// Bytes that a slot for this length has.
pub(crate) fn slot_bytes(len: u64) -> Option<u64> {
    class_of(len).map(|(_, size)| size)
}

const fn alignment(size: u64) -> u64 {
    if size > PAGED_BYTES { 4096 } else { 64 }
}

impl Arena {
    /// Everything is free.
    pub fn new(capacity: u64) -> Arena {
        let shelves = class_of(capacity).map_or(0, |(class, _)| class + 1);
        let ranges = BTreeMap::from([(0, capacity)]);
        Arena { shelves: vec![Vec::new(); shelves], ranges, capacity, used: 0, idle: 0 }
    }

    /// A slot of at least this length, aligned to 64 bytes; `None` where there is none without a [`Arena::drain`].
    pub fn allocate(&mut self, len: u64) -> Option<Range> {
        let (class, size) = class_of(len)?;
        let offset = match self.shelves.get_mut(class)?.pop() {
            Some(offset) => {
                self.idle -= size;
                offset
            }
            None => self.carve(size)?,
        };
        self.used += size;
        Some(Range { offset, len: size })
    }

    /// The first range that is long enough loses its beginning.
    fn carve(&mut self, size: u64) -> Option<u64> {
        let (start, len, offset) = self.ranges.iter().find_map(|(&start, &len)| {
            let offset = start.next_multiple_of(alignment(size));
            (offset + size <= start + len).then_some((start, len, offset))
        })?;
        self.ranges.remove(&start);
        if start < offset {
            self.ranges.insert(start, offset - start);
        }
        if offset + size < start + len {
            self.ranges.insert(offset + size, start + len - offset - size);
        }
        Some(offset)
    }

    /// Takes back a slot. Returns it where too much lies idle: it is to be punched and restored.
    #[must_use]
    pub fn free(&mut self, slot: Range) -> Option<Range> {
        let (class, size) = class_of(slot.len).expect("slots come from this arena");
        debug_assert_eq!(size, slot.len);
        self.used -= size;
        if size >= LARGE_BYTES && self.idle + size > KEEP_BYTES {
            return Some(slot);
        }
        self.idle += size;
        self.shelves[class].push(slot.offset);
        None
    }

    /// All idle slots, to be punched and restored; neighbours in one range.
    pub fn drain(&mut self) -> Vec<Range> {
        let mut ranges: Vec<Range> = Vec::new();
        for class in 0..self.shelves.len() {
            let len = size_of_class(class);
            ranges.extend(self.shelves[class].drain(..).map(|offset| Range { offset, len }));
        }
        self.idle = 0;
        ranges.sort_unstable_by_key(|range| range.offset);
        ranges.dedup_by(|next, range| {
            let adjacent = range.offset + range.len == next.offset;
            range.len += if adjacent { next.len } else { 0 };
            adjacent
        });
        ranges
    }

    /// Makes a range usable for any class.
    pub fn restore(&mut self, range: Range) {
        let (mut start, mut end) = (range.offset, range.offset + range.len);
        debug_assert!(end <= self.capacity);
        if let Some((&before, &len)) = self.ranges.range(..start).next_back()
            && before + len == start
        {
            self.ranges.remove(&before);
            start = before;
        }
        if let Some(len) = self.ranges.remove(&end) {
            end += len;
        }
        self.ranges.insert(start, end - start);
    }

    /// Bytes that are allocated.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Bytes that lie on shelves.
    pub fn idle(&self) -> u64 {
        self.idle
    }
}

/// The inverse of [`class_of`].
fn size_of_class(class: usize) -> u64 {
    match class.checked_sub(1) {
        None => SMALLEST_BYTES,
        Some(step) => (step as u64 % 4 + 5) << (step / 4 + 6),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CAPACITY: u64 = 64 << 20;

    #[test]
    fn every_length_fits_its_class_with_at_most_a_quarter_to_spare() {
        for len in (1..5000).chain([65536, 65537, 1 << 30, (1 << 30) + 1]) {
            let (class, size) = class_of(len).unwrap();
            assert_eq!(size_of_class(class), size, "{len}");
            assert!(size >= len, "{len}: {size}");
            assert!(len <= SMALLEST_BYTES || size * 4 <= len * 5 + 4, "{len}: {size}");
            assert_eq!(size % if size > PAGED_BYTES { 4096 } else { 64 }, 0, "{len}: {size}");
        }
    }

    #[test]
    fn the_slot_that_was_freed_last_is_allocated_first() {
        let mut arena = Arena::new(CAPACITY);
        let first = arena.allocate(1000).unwrap();
        let second = arena.allocate(1000).unwrap();
        assert_eq!(arena.free(first), None);
        assert_eq!(arena.free(second), None);
        assert_eq!(arena.allocate(1000), Some(second));
        assert_eq!(arena.allocate(1000), Some(first));
    }

    #[test]
    fn idle_slots_of_one_size_serve_another_after_a_drain() {
        let mut arena = Arena::new(1 << 20);
        let slots: Vec<Range> = (0..4096).map(|_| arena.allocate(256).unwrap()).collect();
        assert_eq!(arena.allocate(256), None);
        for slot in slots {
            assert_eq!(arena.free(slot), None);
        }
        assert_eq!(arena.allocate(1 << 20), None);
        let drained = arena.drain();
        assert_eq!(drained, [Range { offset: 0, len: 1 << 20 }]);
        drained.into_iter().for_each(|range| arena.restore(range));
        assert!(arena.allocate(1 << 20).is_some());
    }

    #[test]
    fn a_large_slot_is_handed_to_the_puncher_when_enough_lies_idle() {
        let mut arena = Arena::new(1 << 30);
        let slots: Vec<Range> = (0..5).map(|_| arena.allocate(64 << 20).unwrap()).collect();
        let punched: Vec<Range> = slots.into_iter().filter_map(|slot| arena.free(slot)).collect();
        assert_eq!(punched.len(), 1);
        assert_eq!((arena.used(), arena.idle()), (0, KEEP_BYTES));
    }

    #[test]
    fn a_length_beyond_the_reservation_is_refused() {
        let mut arena = Arena::new(CAPACITY);
        assert_eq!(arena.allocate(CAPACITY + 1), None);
        assert_eq!(arena.allocate(u64::MAX), None);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Allocate(u64),
        Free(prop::sample::Index),
        Trim,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            5 => (0u32..23, 0u64..1000).prop_map(|(power, more)| Step::Allocate((1 << power) + more)),
            4 => any::<prop::sample::Index>().prop_map(Step::Free),
            1 => Just(Step::Trim),
        ]
    }

    proptest! {
        #[test]
        fn slots_never_overlap_and_everything_freed_comes_back(steps in prop::collection::vec(step(), 1..200)) {
            let mut arena = Arena::new(CAPACITY);
            let mut live: Vec<Range> = Vec::new();
            for step in steps {
                match step {
                    Step::Allocate(len) => {
                        if let Some(slot) = arena.allocate(len) {
                            prop_assert!(slot.len >= len && slot.offset % 64 == 0);
                            prop_assert!(slot.offset + slot.len <= CAPACITY);
                            for other in &live {
                                let apart = slot.offset + slot.len <= other.offset || other.offset + other.len <= slot.offset;
                                prop_assert!(apart, "{slot:?} {other:?}");
                            }
                            live.push(slot);
                        }
                    }
                    Step::Free(index) => {
                        if !live.is_empty() {
                            let slot = live.swap_remove(index.index(live.len()));
                            if let Some(range) = arena.free(slot) {
                                arena.restore(range);
                            }
                        }
                    }
                    Step::Trim => arena.drain().into_iter().for_each(|range| arena.restore(range)),
                }
                prop_assert_eq!(arena.used(), live.iter().map(|slot| slot.len).sum::<u64>());
            }
            for slot in live {
                if let Some(range) = arena.free(slot) {
                    arena.restore(range);
                }
            }
            arena.drain().into_iter().for_each(|range| arena.restore(range));
            prop_assert_eq!(&arena.ranges, &BTreeMap::from([(0, CAPACITY)]));
        }
    }
}
