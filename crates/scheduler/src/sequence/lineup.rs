//! Who of the sequences of one instance is next.

use std::time::Duration;

use super::policy::{SequencePolicy, Strategy};
use crate::dynamic::Dynamic;
use crate::work::Work;

/// Bits in one word of the bitmap of ready slots.
const WORD: usize = u64::BITS as usize;

/// The sequences of one instance that have a request to run.
#[derive(Debug)]
pub(super) enum Lineup<W> {
    /// By slot; the requests stay with their sequences until they run.
    Direct(Slots),
    /// The requests themselves, in the order in which they became the next of their sequences.
    Oldest(Box<Dynamic<W>>),
}

impl<W: Work> Lineup<W> {
    pub(super) fn new(policy: &SequencePolicy) -> Self {
        match &policy.strategy {
            Strategy::Direct { max_queue_delay, minimum_slot_utilization, .. } => {
                let count = policy.slots();
                let wanted = (f64::from(*minimum_slot_utilization) * count as f64).ceil() as usize;
                let batch_delay = (!max_queue_delay.is_zero() && wanted > 0).then_some((*max_queue_delay, wanted));
                Lineup::Direct(Slots { ready: vec![0; count.div_ceil(WORD)], count: 0, batch_delay })
            }
            Strategy::Oldest { batching, .. } => Lineup::Oldest(Box::new(Dynamic::new(batching.clone()))),
        }
    }
}

impl<W: Work> Lineup<W> {
    /// The requests that stand in line themselves.
    pub(super) fn heads(&self) -> impl Iterator<Item = &W> {
        let dynamic = match self {
            Lineup::Direct(_) => None,
            Lineup::Oldest(dynamic) => Some(dynamic.iter()),
        };
        dynamic.into_iter().flatten()
    }
}

/// Slots whose sequences have a request to run.
#[derive(Debug)]
pub(super) struct Slots {
    /// One bit per slot.
    ready: Vec<u64>,
    count: usize,
    /// How long a batch waits until so many slots are ready; none where it never waits.
    batch_delay: Option<(Duration, usize)>,
}

impl Slots {
    pub(super) fn set(&mut self, slot: u32) {
        let (word, bit) = place(slot);
        self.count += usize::from(self.ready[word] & bit == 0);
        self.ready[word] |= bit;
    }

    pub(super) fn clear(&mut self, slot: u32) {
        let (word, bit) = place(slot);
        self.count -= usize::from(self.ready[word] & bit != 0);
        self.ready[word] &= !bit;
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The ready slots from the lowest. One may be cleared while they are walked through.
    pub(super) fn from(&self, slot: u32) -> Option<u32> {
        let (first, bit) = place(slot);
        let mut word = *self.ready.get(first)? & !(bit - 1);
        for index in first..self.ready.len() {
            if index > first {
                word = self.ready[index];
            }
            if word != 0 {
                return Some((index * WORD) as u32 + word.trailing_zeros());
            }
        }
        None
    }

    /// How long a batch waits for company from the arrival of its oldest request on; `None` where it does not.
    pub(super) fn delay(&self) -> Option<Duration> {
        self.batch_delay.filter(|&(_, wanted)| self.count < wanted).map(|(delay, _)| delay)
    }
}

fn place(slot: u32) -> (usize, u64) {
    (slot as usize / WORD, 1 << (slot as usize % WORD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_slots_are_found_from_the_lowest_across_words() {
        let mut slots = Slots { ready: vec![0; 3], count: 0, batch_delay: None };
        [130, 3, 64, 63, 3].into_iter().for_each(|slot| slots.set(slot));
        assert_eq!(slots.count, 4);
        let mut found = Vec::new();
        let mut next = 0;
        while let Some(slot) = slots.from(next) {
            found.push(slot);
            slots.clear(slot);
            next = slot + 1;
        }
        assert_eq!(found, [3, 63, 64, 130]);
        assert!(slots.is_empty() && slots.from(0).is_none());
    }
}
