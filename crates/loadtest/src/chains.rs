//! Requests that one caller sends one after the other.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;

/// The chains of one source that a thread sends, and which of them no caller has.
#[derive(Debug)]
pub struct Chains {
    free: RefCell<VecDeque<Range<usize>>>,
}

/// A chain that a caller sends. It is free again when it is given back.
#[derive(Debug)]
pub struct Chain {
    whole: Range<usize>,
    next: usize,
}

impl Chains {
    /// These chains, all of them free.
    pub fn new(all: impl Iterator<Item = Range<usize>>) -> Chains {
        Chains { free: RefCell::new(all.collect()) }
    }

    /// The chain that has been free for longest.
    ///
    /// # Panics
    /// If none is free: a load has at least as many chains as callers.
    pub fn take(&self) -> Chain {
        let whole = self.free.borrow_mut().pop_front().expect("there are as many chains as callers");
        Chain { next: whole.start, whole }
    }

    /// Takes a chain back.
    pub fn give(&self, chain: Chain) {
        self.free.borrow_mut().push_back(chain.whole);
    }
}

impl Chain {
    /// How many requests it has.
    pub fn len(&self) -> usize {
        self.whole.len()
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

    #[test]
    fn a_chain_comes_again_once_it_is_over_and_behind_the_others() {
        let chains = Chains::new([0..2, 2..3].into_iter());
        let first = chains.take();
        let second = chains.take();
        chains.give(second);
        chains.give(first);
        assert_eq!(chains.take().collect::<Vec<_>>(), [2]);
        assert_eq!(chains.take().collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn a_chain_that_is_cut_short_keeps_its_last_request() {
        let mut chain = Chains::new(std::iter::once(3..9)).take();
        assert_eq!((chain.len(), chain.next()), (6, Some(3)));
        chain.shorten();
        assert_eq!((chain.next(), chain.is_over()), (Some(8), true));
        chain.shorten();
        assert!(chain.is_over(), "nothing is sent twice");
    }
}
