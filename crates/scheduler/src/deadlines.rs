//! The moments at which requests will have waited too long, earliest first.
//!
//! Almost every request is taken before its moment, so leaving has to be cheap, wherever in the order it stands: its
//! entry in the heap stays behind and is known as stale when it comes to the top, or when stale ones are the most. A
//! search tree would look both entry and neighbours up, which costs a microsecond each time where a hundred thousand
//! wait.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Instant;

use slab::Slab;

/// Stale entries that are kept whatever the others are: to sweep a short heap would gain nothing.
const STALE_ALLOWANCE: usize = 64;

/// Deadlines, each with what is to be found again when it has come. A key names one of them until it is forgotten.
#[derive(Debug)]
pub(crate) struct Deadlines<T> {
    heap: BinaryHeap<Entry>,
    watched: Slab<Watched<T>>,
    /// Deadlines that ever came.
    came: u64,
}

#[derive(Debug)]
struct Watched<T> {
    number: u64,
    what: T,
}

/// Stale where its key is free, or names a deadline that came later.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    deadline: Instant,
    number: u64,
    key: usize,
}

impl Ord for Entry {
    /// The earliest is the greatest, and so on top; of equal ones the one that came first.
    fn cmp(&self, other: &Entry) -> Ordering {
        (other.deadline, other.number).cmp(&(self.deadline, self.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Default for Deadlines<T> {
    fn default() -> Self {
        Deadlines { heap: BinaryHeap::new(), watched: Slab::new(), came: 0 }
    }
}

impl<T> Deadlines<T> {
    pub(crate) fn watch(&mut self, deadline: Instant, what: T) -> usize {
        self.came += 1;
        let number = self.came;
        let key = self.watched.insert(Watched { number, what });
        self.heap.push(Entry { deadline, number, key });
        key
    }

    pub(crate) fn forget(&mut self, key: usize) {
        self.watched.remove(key);
        let Deadlines { heap, watched, .. } = self;
        if heap.len() > 2 * watched.len() + STALE_ALLOWANCE {
            heap.retain(|entry| is_live(watched, entry));
        }
        self.clear_top();
    }

    /// The earliest deadline, and what it is for.
    pub(crate) fn first(&self) -> Option<(Instant, &T)> {
        // What is on top is never stale.
        let entry = self.heap.peek()?;
        Some((entry.deadline, &self.watched.get(entry.key)?.what))
    }

    pub(crate) fn forget_first(&mut self) {
        if let Some(entry) = self.heap.pop() {
            self.watched.remove(entry.key);
            self.clear_top();
        }
    }

    fn clear_top(&mut self) {
        while self.heap.peek().is_some_and(|entry| !is_live(&self.watched, entry)) {
            self.heap.pop();
        }
    }
}

fn is_live<T>(watched: &Slab<Watched<T>>, entry: &Entry) -> bool {
    watched.get(entry.key).is_some_and(|known| known.number == entry.number)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn of_equal_deadlines_the_one_that_came_first_is_first() {
        let (mut deadlines, now) = (Deadlines::default(), Instant::now());
        let keys = ["first", "second", "third"].map(|name| deadlines.watch(now, name));
        deadlines.forget(keys[0]);
        assert_eq!(deadlines.first(), Some((now, &"second")));
        deadlines.forget_first();
        assert_eq!(deadlines.first(), Some((now, &"third")));
    }

    #[test]
    fn forgotten_deadlines_leave_the_heap() {
        let (mut deadlines, now) = (Deadlines::default(), Instant::now());
        deadlines.watch(now, 0);
        for number in 1..10_000 {
            let key = deadlines.watch(now + Duration::from_secs(number), number);
            deadlines.forget(key);
            assert!(deadlines.heap.len() <= 2 + STALE_ALLOWANCE);
        }
        assert_eq!(deadlines.first(), Some((now, &0)));
    }

    proptest! {
        #[test]
        fn the_first_is_the_earliest_of_those_that_are_not_forgotten(events in vec((0u64..50, 0usize..8), 0..400)) {
            let (mut deadlines, now) = (Deadlines::default(), Instant::now());
            let mut known: Vec<(Instant, usize, usize)> = Vec::new();
            for (number, (moment, choice)) in events.into_iter().enumerate() {
                match choice {
                    0..4 => {
                        let deadline = now + Duration::from_millis(moment);
                        known.push((deadline, number, deadlines.watch(deadline, number)));
                    }
                    4..7 if !known.is_empty() => {
                        let (_, _, key) = known.remove(moment as usize % known.len());
                        deadlines.forget(key);
                    }
                    _ => {
                        deadlines.forget_first();
                        known.sort_unstable();
                        known.drain(..known.len().min(1));
                    }
                }
                let first = known.iter().min().map(|(deadline, number, _)| (*deadline, *number));
                prop_assert_eq!(deadlines.first().map(|(deadline, number)| (deadline, *number)), first);
            }
        }
    }
}
