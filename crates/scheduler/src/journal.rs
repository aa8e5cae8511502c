//! The last decisions about a queue.

use std::collections::VecDeque;
use std::time::Instant;

use crate::why::Decision;

/// Decisions that are remembered: enough to see a pattern, few enough that a thousand models remember them for nothing.
const REMEMBERED: usize = 100;

impl Decision {
    /// Whether this decision now speaks for the other one as well.
    fn absorb(&mut self, other: Decision) -> bool {
        match (self, other) {
            (Decision::Refused { requests }, Decision::Refused { requests: more })
            | (Decision::Expired { requests }, Decision::Expired { requests: more })
            | (Decision::Withdrew { requests }, Decision::Withdrew { requests: more }) => {
                *requests += more;
                true
            }
            _ => false,
        }
    }
}

/// A ring of decisions. Its memory grows with what was decided, so a model that is never asked costs none.
#[derive(Debug, Default)]
pub(crate) struct Journal(VecDeque<(Instant, Decision)>);

impl Journal {
    /// Requests that are turned away, or withdrawn, one after the other are one entry: a flood of them is no reason to
    /// forget everything else.
    pub(crate) fn note(&mut self, now: Instant, decision: Decision) {
        if let Some((at, last)) = self.0.back_mut()
            && last.absorb(decision)
        {
            *at = now;
            return;
        }
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((now, decision));
    }

    /// Oldest first.
    pub(crate) fn decisions(&self) -> Vec<(Instant, Decision)> {
        self.0.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_hundred_decisions_are_remembered() {
        let (mut journal, now) = (Journal::default(), Instant::now());
        (0..130).for_each(|requests| journal.note(now, Decision::PutBack { requests }));
        let decisions = journal.decisions();
        assert_eq!(decisions.len(), 100);
        assert_eq!(decisions[0].1, Decision::PutBack { requests: 30 });
        assert_eq!(decisions[99].1, Decision::PutBack { requests: 129 });
    }

    #[test]
    fn a_flood_of_refusals_is_one_entry() {
        let (mut journal, now) = (Journal::default(), Instant::now());
        journal.note(now, Decision::Stopped);
        (0..500).for_each(|_| journal.note(now, Decision::Refused { requests: 1 }));
        journal.note(now, Decision::Withdrew { requests: 2 });
        let decisions: Vec<_> = journal.decisions().into_iter().map(|(_, decision)| decision).collect();
        let refused = Decision::Refused { requests: 500 };
        assert_eq!(decisions, [Decision::Stopped, refused, Decision::Withdrew { requests: 2 }]);
    }
}
