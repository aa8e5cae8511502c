//! Which requests are claimed together.

use crate::entry::Entry;

/// A claim that is being made.
#[derive(Debug)]
pub(crate) struct Batch {
    max_rows: u32,
    /// Rows so far, with the first request's key and group.
    first: Option<(u64, u64)>,
    rows: u32,
}

impl Batch {
    pub fn new(max_rows: u32) -> Batch {
        Batch { max_rows, first: None, rows: 0 }
    }

    pub fn takes(&self, entry: &Entry) -> bool {
        let Some((key, group)) = self.first else {
            return true;
        };
        if entry.group != group {
            return false;
        }
        let fits = self.max_rows != 0 && self.rows.saturating_add(entry.rows) <= self.max_rows;
        group != 0 || (entry.key == key && fits)
    }

    pub fn add(&mut self, entry: &Entry) {
        self.first.get_or_insert((entry.key, entry.group));
        self.rows = self.rows.saturating_add(entry.rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: Entry = Entry { slot: 0, ticket: 1, rows: 1, key: 0, group: 0, frame: (0, 0) };

    fn after(first: Entry, max_rows: u32) -> Batch {
        let mut batch = Batch::new(max_rows);
        assert!(batch.takes(&first), "the first is always taken");
        batch.add(&first);
        batch
    }

    #[test]
    fn rows_and_keys_bound_a_free_batch() {
        let batch = after(Entry { rows: 3, ..ENTRY }, 4);
        assert!(batch.takes(&ENTRY));
        assert!(!batch.takes(&Entry { rows: 2, ..ENTRY }));
        assert!(!batch.takes(&Entry { rows: u32::MAX, ..ENTRY }));
        assert!(!batch.takes(&Entry { key: 1, ..ENTRY }));
        assert!(!batch.takes(&Entry { group: 1, ..ENTRY }));
    }

    #[test]
    fn a_group_is_bounded_by_nothing_but_itself() {
        for max_rows in [0, 1] {
            let batch = after(Entry { group: 5, ..ENTRY }, max_rows);
            assert!(batch.takes(&Entry { group: 5, rows: 9, key: 1, ..ENTRY }));
            assert!(!batch.takes(&Entry { group: 6, ..ENTRY }) && !batch.takes(&ENTRY));
        }
    }

    #[test]
    fn without_batches_one_is_enough() {
        assert!(!after(ENTRY, 0).takes(&ENTRY));
        assert!(!after(Entry { rows: 0, ..ENTRY }, 0).takes(&ENTRY));
    }
}
