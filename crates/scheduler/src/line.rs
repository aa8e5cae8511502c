//! A line of waiting requests: the order of arrival, and removal anywhere, each in constant time.

use slab::Slab;

use crate::work::Waiting;

/// Stands for "nobody" among the neighbours in a line: no slab is that long.
const NOBODY: usize = usize::MAX;

/// Requests in a line. A key names one of them until it leaves. Nothing is allocated once the line has been as long as
/// it gets.
#[derive(Debug)]
pub(crate) struct Line<W> {
    places: Slab<Node<W>>,
    head: usize,
    tail: usize,
}

#[derive(Debug)]
struct Node<W> {
    waiting: Waiting<W>,
    before: usize,
    behind: usize,
}

impl<W> Default for Line<W> {
    fn default() -> Self {
        Line { places: Slab::new(), head: NOBODY, tail: NOBODY }
    }
}

impl<W> Line<W> {
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn first(&self) -> Option<usize> {
        somebody(self.head)
    }

    /// Who stands behind this one.
    pub(crate) fn behind(&self, key: usize) -> Option<usize> {
        somebody(self.places[key].behind)
    }

    pub(crate) fn get(&self, key: usize) -> &Waiting<W> {
        &self.places[key].waiting
    }

    /// The key that the next one to join will have.
    pub(crate) fn next_key(&self) -> usize {
        self.places.vacant_key()
    }

    pub(crate) fn push_back(&mut self, waiting: Waiting<W>) -> usize {
        let before = self.tail;
        let key = self.places.insert(Node { waiting, before, behind: NOBODY });
        match somebody(before) {
            Some(before) => self.places[before].behind = key,
            None => self.head = key,
        }
        self.tail = key;
        key
    }

    pub(crate) fn push_front(&mut self, waiting: Waiting<W>) -> usize {
        let behind = self.head;
        let key = self.places.insert(Node { waiting, before: NOBODY, behind });
        match somebody(behind) {
            Some(behind) => self.places[behind].before = key,
            None => self.tail = key,
        }
        self.head = key;
        key
    }

    pub(crate) fn remove(&mut self, key: usize) -> Waiting<W> {
        let Node { waiting, before, behind } = self.places.remove(key);
        match somebody(before) {
            Some(before) => self.places[before].behind = behind,
            None => self.head = behind,
        }
        match somebody(behind) {
            Some(behind) => self.places[behind].before = before,
            None => self.tail = before,
        }
        waiting
    }
}

fn somebody(key: usize) -> Option<usize> {
    (key != NOBODY).then_some(key)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn line(works: &[u32]) -> (Line<u32>, Vec<usize>) {
        let mut line = Line::default();
        let entered = Instant::now();
        let keys = works.iter().map(|&work| line.push_back(Waiting { entered, watch: None, work })).collect();
        (line, keys)
    }

    fn all(line: &Line<u32>) -> Vec<u32> {
        let mut seen = Vec::new();
        let mut place = line.first();
        while let Some(key) = place {
            seen.push(line.get(key).work);
            place = line.behind(key);
        }
        assert_eq!(seen.len(), line.len());
        seen
    }

    #[test]
    fn other_requests_keep_their_order_whichever_one_leaves() {
        for leaver in 0..3 {
            let (mut line, keys) = line(&[1, 2, 3]);
            let left = line.remove(keys[leaver]).work;
            assert_eq!(all(&line), [1, 2, 3].into_iter().filter(|&work| work != left).collect::<Vec<_>>());
            line.push_back(Waiting { entered: Instant::now(), watch: None, work: 4 });
            line.push_front(Waiting { entered: Instant::now(), watch: None, work: 0 });
            assert_eq!((all(&line)[0], all(&line)[3]), (0, 4));
        }
    }

    #[test]
    fn an_empty_line_begins_anew() {
        let (mut line, keys) = line(&[1]);
        line.remove(keys[0]);
        assert!(line.len() == 0 && line.first().is_none());
        line.push_front(Waiting { entered: Instant::now(), watch: None, work: 2 });
        assert_eq!(all(&line), [2]);
    }
}
