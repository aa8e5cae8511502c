//! What a sequence queue reports of itself.

use std::time::Instant;

use super::SequenceQueue;
use crate::sequence::instance::Doing;
use crate::why::{Explanation, Hold, Outlook};
use crate::work::Work;

impl<W: Work> SequenceQueue<W> {
    /// The queue as it is now: what goes next, what keeps it, and what was decided last.
    pub(super) fn explanation(&mut self, now: Instant) -> Explanation {
        let served: Vec<usize> = (0..self.instances.len()).filter(|&index| !self.instances[index].retired).collect();
        let busy = served.iter().filter(|&&index| self.instances[index].doing == Doing::Busy).count();
        let each: Vec<(usize, Option<Outlook>)> =
            served.iter().map(|&index| (index, self.outlook(now, index))).collect();
        let next = each.into_iter().filter_map(|(index, outlook)| Some((index, outlook?)));
        let next = next.min_by_key(|(index, outlook)| (self.instances[*index].doing == Doing::Busy, outlook.due));
        let hold = match &next {
            _ if self.waiting == 0 => Hold::Nothing,
            _ if served.is_empty() => Hold::NoInstance,
            _ if self.holding => Hold::Start,
            None => Hold::Slot,
            Some((index, _)) if self.instances[*index].doing == Doing::Busy => Hold::Busy,
            Some((_, outlook)) if outlook.due > now => Hold::Company,
            Some(_) => Hold::Coming,
        };
        Explanation {
            waiting: self.waiting,
            instances: served.len(),
            busy,
            outlook: next.map(|(_, outlook)| outlook),
            hold,
            decisions: self.journal.decisions(),
        }
    }
}
