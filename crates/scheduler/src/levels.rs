//! Who waits, by priority: a line per level, behind it those that have waited too long, and the deadlines of all of
//! them.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::deadlines::Deadlines;
use crate::line::Line;
use crate::policy::{Priorities, QueuePolicy, TimeoutAction};
use crate::work::{Reason, Refused, Waiting, Work};

/// Levels that are kept although nobody waits there. A few, so that the levels in use are not built anew for every
/// request; not all, since there may be as many as there are numbers.
const RETAINED_LEVELS: usize = 16;

/// Which line: first the one of the highest level, and within a level first those that have not waited too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    level: u64,
    late: bool,
}

impl Rank {
    pub(crate) fn level(self) -> u64 {
        self.level
    }
}

/// Where a request waits. Names it until it leaves or is late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    pub(crate) rank: Rank,
    key: usize,
}

/// The waiting requests of a model.
#[derive(Debug)]
pub(crate) struct Levels<W> {
    priorities: Priorities,
    levels: BTreeMap<u64, Level<W>>,
    /// Of those that are not late yet; empty where no policy has a time-out.
    deadlines: Deadlines<Spot>,
    waiting: usize,
}

#[derive(Debug)]
struct Level<W> {
    policy: QueuePolicy,
    live: Line<W>,
    late: Line<W>,
}

impl<W> Level<W> {
    fn new(policy: QueuePolicy) -> Level<W> {
        Level { policy, live: Line::default(), late: Line::default() }
    }

    fn line(&self, late: bool) -> &Line<W> {
        if late { &self.late } else { &self.live }
    }

    fn line_mut(&mut self, late: bool) -> &mut Line<W> {
        if late { &mut self.late } else { &mut self.live }
    }

    fn len(&self) -> usize {
        self.live.len() + self.late.len()
    }
}

impl<W: Work> Levels<W> {
    pub(crate) fn new(priorities: Priorities) -> Levels<W> {
        Levels { priorities, levels: BTreeMap::new(), deadlines: Deadlines::default(), waiting: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    /// Whether no more requests may wait where this one would.
    pub(crate) fn is_full_for(&self, work: &W) -> bool {
        let level = self.levels.get(&self.priorities.level_of(work.priority()));
        level.is_some_and(|level| level.policy.max_queue_size != 0 && level.len() >= level.policy.max_queue_size)
    }

    /// Puts a request at the end of its line; returns that line.
    pub(crate) fn push_back(&mut self, now: Instant, mut work: W) -> Rank {
        let rank = self.rank_of(&work);
        let level = level(&mut self.levels, &self.priorities, rank.level);
        let deadline = level.policy.deadline(now, &work);
        if deadline.is_some() {
            work.set_deadline(deadline);
        }
        let spot = Spot { rank, key: level.live.next_key() };
        let watch = deadline.map(|deadline| self.deadlines.watch(deadline, spot));
        level.live.push_back(Waiting { entered: now, watch, work });
        self.waiting += 1;
        rank
    }

    /// Puts a request that was in the queue before at the head of its line, with the deadline that it had.
    pub(crate) fn push_front(&mut self, entered: Instant, work: W) {
        let rank = self.rank_of(&work);
        let level = level(&mut self.levels, &self.priorities, rank.level);
        let spot = Spot { rank, key: level.live.next_key() };
        let watch = work.deadline().map(|deadline| self.deadlines.watch(deadline, spot));
        level.live.push_front(Waiting { entered, watch, work });
        self.waiting += 1;
    }

    fn rank_of(&self, work: &W) -> Rank {
        Rank { level: self.priorities.level_of(work.priority()), late: false }
    }

    /// How many wait below the level of who goes first.
    pub(crate) fn below_first(&self) -> usize {
        if self.priorities.levels < 2 {
            return 0;
        }
        let first = self.levels.values().map(Level::len).find(|&count| count > 0);
        self.waiting - first.unwrap_or(0)
    }

    /// Who goes first.
    pub(crate) fn first(&self) -> Option<Spot> {
        self.head_from(Rank { level: 0, late: false })
    }

    /// Who goes after this one.
    pub(crate) fn behind(&self, Spot { rank, key }: Spot) -> Option<Spot> {
        if let Some(key) = self.levels[&rank.level].line(rank.late).behind(key) {
            return Some(Spot { rank, key });
        }
        let next = if rank.late {
            Rank { level: rank.level.checked_add(1)?, late: false }
        } else {
            Rank { late: true, ..rank }
        };
        self.head_from(next)
    }

    /// The head of the first line from this one on in which anybody waits.
    fn head_from(&self, from: Rank) -> Option<Spot> {
        for (&number, level) in self.levels.range(from.level..) {
            for late in [false, true] {
                let rank = Rank { level: number, late };
                if let Some(key) = level.line(late).first().filter(|_| rank >= from) {
                    return Some(Spot { rank, key });
                }
            }
        }
        None
    }

    pub(crate) fn get(&self, Spot { rank, key }: Spot) -> &Waiting<W> {
        self.levels[&rank.level].line(rank.late).get(key)
    }

    pub(crate) fn remove(&mut self, spot: Spot) -> W {
        let Spot { rank, key } = spot;
        let level = level(&mut self.levels, &self.priorities, rank.level);
        let Waiting { work, watch, .. } = level.line_mut(rank.late).remove(key);
        if let Some(watch) = watch {
            self.deadlines.forget(watch);
        }
        self.waiting -= 1;
        if level.len() == 0 && self.levels.len() > RETAINED_LEVELS {
            self.levels.remove(&rank.level);
        }
        work
    }

    /// Those who wait, in the order in which they go.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &W> {
        std::iter::successors(self.first(), |spot| self.behind(*spot)).map(|spot| &self.get(spot).work)
    }

    /// The first of each line.
    pub(crate) fn heads(&self) -> impl Iterator<Item = &W> {
        let lines = self.levels.values().flat_map(|level| [&level.live, &level.late]);
        lines.filter_map(|line| Some(&line.get(line.first()?).work))
    }

    /// Moves the requests that `pick` names into `removed`, first to last.
    pub(crate) fn remove_where(&mut self, mut pick: impl FnMut(&W) -> bool, mut removed: impl FnMut(W)) {
        let mut place = self.first();
        while let Some(spot) = place {
            place = self.behind(spot);
            if pick(&self.get(spot).work) {
                removed(self.remove(spot));
            }
        }
    }

    /// The first moment at which somebody has waited too long.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| deadline)
    }

    /// Does what the policies say with those who have waited too long; returns whether there were any.
    pub(crate) fn expire(&mut self, now: Instant, refused: &mut Vec<Refused<W>>) -> bool {
        let mut any = false;
        while let Some((_, &spot)) = self.deadlines.first().filter(|(deadline, _)| *deadline <= now) {
            any = true;
            match self.levels[&spot.rank.level].policy.timeout_action {
                TimeoutAction::Reject => refused.push(Refused { work: self.remove(spot), reason: Reason::Expired }),
                TimeoutAction::Delay => {
                    self.deadlines.forget_first();
                    let level = level(&mut self.levels, &self.priorities, spot.rank.level);
                    let waiting = level.live.remove(spot.key);
                    level.late.push_back(Waiting { watch: None, ..waiting });
                }
            }
        }
        any
    }
}

/// A level, which there is from its first request on.
fn level<'a, W>(levels: &'a mut BTreeMap<u64, Level<W>>, priorities: &Priorities, number: u64) -> &'a mut Level<W> {
    levels.entry(number).or_insert_with(|| Level::new(priorities.policy_of(number)))
}
