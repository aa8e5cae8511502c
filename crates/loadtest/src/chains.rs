//! Sequences: prepared requests that one caller sends one after the other, each time under an id of its own.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Requests that one caller sends one after the other. A sequence is a chain from its beginning to its end, under an id
/// of its own; chains are sent in turn.
#[derive(Clone, Debug)]
pub struct Sequences {
    /// The requests of each.
    pub chains: Vec<Range<usize>>,
    /// Ids, used in turn.
    pub ids: Arc<Ids>,
    /// Most sequences under way; as many as there may be requests where it is left open.
    pub most: Option<NonZeroUsize>,
}

impl Sequences {
    /// Most sequences that may be under way at a time.
    pub fn most(&self) -> usize {
        let ids = self.ids.count();
        self.most.map_or(ids, |most| ids.min(most.get()))
    }
}

/// The ids of sequences, used in turn: behind the last one comes the first one again. Loads that follow each other may
/// share them.
#[derive(Debug)]
pub struct Ids {
    range: Range<u64>,
    state: Mutex<IdState>,
}

#[derive(Debug)]
struct IdState {
    next: u64,
    in_use: HashSet<u64>,
}

impl Ids {
    /// Ids of this range, none of them in use.
    pub fn new(range: Range<u64>) -> Ids {
        Ids { state: Mutex::new(IdState { next: range.start, in_use: HashSet::new() }), range }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        usize::try_from(self.range.end.saturating_sub(self.range.start)).unwrap_or(usize::MAX)
    }

    /// The next one that is not in use. There are at least as many as sequences under way, which the engine checks.
    fn take(&self) -> u64 {
        let mut state = self.state.lock();
        loop {
            let id = state.next;
            state.next = if id + 1 == self.range.end { self.range.start } else { id + 1 };
            if state.in_use.insert(id) {
                return id;
            }
        }
    }
}

/// The chains of a source, for all threads of a load.
#[derive(Debug)]
pub struct Chains {
    all: Vec<Range<usize>>,
    begun: AtomicUsize,
    ids: Arc<Ids>,
}

/// A chain that a caller sends as a sequence. Its id is free again when it is dropped.
#[derive(Debug)]
pub struct Chain {
    id: u64,
    ids: Arc<Ids>,
    whole: Range<usize>,
    next: usize,
}

impl Chains {
    /// The chains of these sequences, none of them under way.
    pub fn new(sequences: &Sequences) -> Chains {
        Chains { all: sequences.chains.clone(), begun: AtomicUsize::new(0), ids: sequences.ids.clone() }
    }

    /// The next chain, under the next id.
    pub fn take(&self) -> Chain {
        self.take_if(|_| true).expect("it is wanted")
    }

    /// The next chain, under the next id, if as many requests as it has are wanted; a chain that is not sent uses no
    /// id.
    pub fn take_if(&self, is_wanted: impl FnOnce(usize) -> bool) -> Option<Chain> {
        let whole = self.all[self.begun.fetch_add(1, Ordering::Relaxed) % self.all.len()].clone();
        is_wanted(whole.len()).then(|| {
            let ids = self.ids.clone();
            Chain { id: ids.take(), ids, next: whole.start, whole }
        })
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        self.ids.state.lock().in_use.remove(&self.id);
    }
}

impl Chain {
    /// The id of the sequence.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether all its requests were sent.
    pub fn is_over(&self) -> bool {
        self.next >= self.whole.end
    }

    /// Leaves out all that is left but its last request, by which a server knows that a sequence is over.
    pub fn shorten(&mut self) {
        self.next = self.next.max(self.whole.end - 1);
    }
}

impl Iterator for Chain {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let request = (!self.is_over()).then_some(self.next)?;
        self.next += 1;
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(chains: &[Range<usize>], ids: Range<u64>) -> Chains {
        Chains::new(&Sequences { chains: chains.to_vec(), ids: Arc::new(Ids::new(ids)), most: None })
    }

    #[test]
    fn each_sequence_is_the_next_chain_from_its_beginning_under_the_next_id() {
        let chains = of(&[0..2, 2..3], 5..u64::MAX);
        for (id, requests) in [(5, vec![0, 1]), (6, vec![2]), (7, vec![0, 1]), (8, vec![2])] {
            let chain = chains.take();
            assert_eq!(chain.id(), id);
            assert_eq!(chain.collect::<Vec<_>>(), requests);
        }
    }

    #[test]
    fn an_id_comes_again_behind_the_last_one_and_never_while_it_is_in_use() {
        let only = 0..1;
        let chains = of(&[only], 1..4);
        let first = chains.take();
        for id in [2, 3, 2, 3] {
            assert_eq!(chains.take().id(), id);
        }
        drop(first);
        assert_eq!(chains.take().id(), 1);
    }

    #[test]
    fn a_chain_that_is_cut_short_keeps_its_last_request() {
        let only = 3..9;
        let mut chain = of(&[only], 1..2).take();
        assert_eq!(chain.next(), Some(3));
        chain.shorten();
        assert_eq!((chain.next(), chain.is_over()), (Some(8), true));
        chain.shorten();
        assert!(chain.is_over(), "nothing is sent twice");
    }
}
