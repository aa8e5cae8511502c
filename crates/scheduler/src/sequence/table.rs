//! Every sequence there is, by number, by id and by how long it has been silent.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use slab::Slab;

use super::backlog::BacklogTicket;
use crate::work::{SequenceId, SlotId, Waiting};

/// The end of the list of silent sequences.
const NOBODY: usize = usize::MAX;

/// Where a sequence is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Slot(SlotId),
    Backlog(BacklogTicket),
}

/// One sequence.
#[derive(Debug)]
pub(super) struct Sequence<W> {
    pub(super) place: Place,
    /// Requests behind the one that is out, oldest first.
    pub(super) waiting: VecDeque<Waiting<W>>,
    /// Its next request runs, or stands in line to.
    pub(super) out: bool,
    /// It leaves its slot when what is out is done: that was its last request, or it was given up.
    pub(super) over: bool,
    /// The id that leads here, as long as further requests may come.
    id: Option<SequenceId>,
    silent: Option<Silent>,
}

/// A place in the list of silent sequences.
#[derive(Debug, Clone, Copy)]
struct Silent {
    since: Instant,
    before: usize,
    behind: usize,
}

/// All sequences of a model version.
#[derive(Debug)]
pub(super) struct Table<W> {
    all: Slab<Sequence<W>>,
    by_id: HashMap<SequenceId, usize>,
    // Longest silent first. Time never runs back, so who falls silent now belongs at the end.
    first_silent: usize,
    last_silent: usize,
}

impl<W> Default for Table<W> {
    fn default() -> Self {
        Table { all: Slab::new(), by_id: HashMap::new(), first_silent: NOBODY, last_silent: NOBODY }
    }
}

impl<W> Table<W> {
    /// The sequence that goes on under an id.
    pub(super) fn find(&self, id: &SequenceId) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// A sequence that begins. One without id is known by its number alone.
    pub(super) fn open(&mut self, id: Option<SequenceId>, place: Place) -> usize {
        let sequence =
            Sequence { place, waiting: VecDeque::new(), out: false, over: false, id: id.clone(), silent: None };
        let key = self.all.insert(sequence);
        if let Some(id) = id {
            self.by_id.insert(id, key);
        }
        key
    }

    /// Its id leads here no longer: what comes under it now is another sequence.
    pub(super) fn close(&mut self, key: usize) {
        if let Some(id) = self.all[key].id.take() {
            self.by_id.remove(&id);
        }
    }

    /// Whether nothing further can come, and nothing waits.
    pub(super) fn is_complete(&self, key: usize) -> bool {
        self.all[key].id.is_none() && self.all[key].waiting.is_empty()
    }

    pub(super) fn remove(&mut self, key: usize) -> Sequence<W> {
        self.close(key);
        self.wake(key);
        self.all.remove(key)
    }

    pub(super) fn get(&mut self, key: usize) -> &mut Sequence<W> {
        &mut self.all[key]
    }

    pub(super) fn keys(&self) -> Vec<usize> {
        self.all.iter().map(|(key, _)| key).collect()
    }

    /// The requests that wait behind those that are out.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &W> {
        self.all.iter().flat_map(|(_, sequence)| sequence.waiting.iter().map(|waiting| &waiting.work))
    }

    /// The first of those of each sequence.
    pub(super) fn heads(&self) -> impl Iterator<Item = &W> {
        self.all.iter().filter_map(|(_, sequence)| Some(&sequence.waiting.front()?.work))
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Nothing of it waits or runs from now on.
    pub(super) fn fall_silent(&mut self, key: usize, since: Instant) {
        self.wake(key);
        let before = self.last_silent;
        self.all[key].silent = Some(Silent { since, before, behind: NOBODY });
        match before {
            NOBODY => self.first_silent = key,
            before => self.silent(before).behind = key,
        }
        self.last_silent = key;
    }

    /// It is silent no longer, if it was.
    pub(super) fn wake(&mut self, key: usize) {
        let Some(Silent { before, behind, .. }) = self.all[key].silent.take() else { return };
        match before {
            NOBODY => self.first_silent = behind,
            before => self.silent(before).behind = behind,
        }
        match behind {
            NOBODY => self.last_silent = before,
            behind => self.silent(behind).before = before,
        }
    }

    /// Who has been silent longest, and since when.
    pub(super) fn longest_silent(&self) -> Option<(usize, Instant)> {
        let silent = self.all.get(self.first_silent)?.silent?;
        Some((self.first_silent, silent.since))
    }

    fn silent(&mut self, key: usize) -> &mut Silent {
        self.all[key].silent.as_mut().expect("the list of silent sequences holds only such")
    }
}
