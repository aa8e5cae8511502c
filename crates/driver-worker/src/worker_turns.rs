//! The turns of a worker that are in use: which of them are free decides how much the queue brings it.

/// The numbers of a worker's turns, one per level: evenly spaced, so that neither direction needs a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    first: usize,
    stride: usize,
}

impl Numbers {
    /// The numbers of one worker among those that a version begins with, interleaved with its siblings'.
    pub fn among(siblings: usize, index: usize) -> Numbers {
        Numbers { first: index, stride: siblings }
    }

    /// The numbers of a worker that is added later, from the first number that was never used.
    pub fn behind(first: usize) -> Numbers {
        Numbers { first, stride: 1 }
    }

    /// The turn at a level.
    pub fn turn(self, level: usize) -> usize {
        self.first + level * self.stride
    }

    /// The level of one of these turns.
    pub fn level(self, turn: usize) -> usize {
        (turn - self.first) / self.stride
    }
}

/// The requests that one turn has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group(usize);

/// The turns of one worker that are in use, by level.
///
/// When the requests of a turn are over, the turn that is freed is the last one in use, and its requests go on in the
/// place of the one that has ended. The queue starts the lowest level that is free first, and so finds the worker with
/// the least to do. Were the ended turn freed, a worker whose oldest request is over would come first, and a request
/// would wait behind all that it still has to do while another worker has nothing.
pub struct WorkerTurns {
    numbers: Numbers,
    /// By level: the group that has it.
    groups: Vec<Option<Group>>,
    /// By group.
    members: Vec<Members>,
    /// Groups that no turn has.
    unused: Vec<Group>,
    /// No level from here on is in use.
    end: usize,
}

#[derive(Clone, Copy, Default)]
struct Members {
    level: usize,
    /// Requests that are not over.
    left: u32,
}

impl WorkerTurns {
    /// The turns with these numbers, none of them in use.
    pub fn new(numbers: Numbers, levels: usize) -> WorkerTurns {
        let unused = (0..levels).rev().map(Group).collect();
        WorkerTurns { numbers, groups: vec![None; levels], members: vec![Members::default(); levels], unused, end: 0 }
    }

    /// A turn has brought so many requests.
    ///
    /// # Panics
    ///
    /// If the turn is in use: then two threads believe that it is theirs.
    pub fn begin(&mut self, turn: usize, requests: u32) -> Group {
        let level = self.numbers.level(turn);
        assert!(self.groups[level].is_none(), "turn {turn} is in use");
        let group = self.unused.pop().expect("there are as many groups as levels");
        self.members[group.0] = Members { level, left: requests };
        self.groups[level] = Some(group);
        self.end = self.end.max(level + 1);
        group
    }

    /// One request of a group is over. The turn that is free now, where it was the last of its group.
    pub fn end(&mut self, group: Group) -> Option<usize> {
        let Members { level, left } = &mut self.members[group.0];
        *left -= 1;
        if *left > 0 {
            return None;
        }
        let (level, last) = (*level, self.end - 1);
        self.unused.push(group);
        self.groups[level] = None;
        self.groups.swap(level, last);
        if let Some(moved) = self.groups[level] {
            self.members[moved.0].level = level;
        }
        while self.end > 0 && self.groups[self.end - 1].is_none() {
            self.end -= 1;
        }
        Some(self.numbers.turn(last))
    }

    /// All of them are over: the turns that were in use.
    pub fn clear(&mut self) -> Vec<usize> {
        let (numbers, levels) = (self.numbers, self.groups.len());
        let in_use = self.groups.iter().enumerate().filter(|(_, group)| group.is_some());
        let turns = in_use.map(|(level, _)| numbers.turn(level)).collect();
        *self = WorkerTurns::new(numbers, levels);
        turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The turns of the second of three workers: 1, 4, 7, 10.
    fn turns() -> WorkerTurns {
        WorkerTurns::new(Numbers::among(3, 1), 4)
    }

    #[test]
    fn turns_and_levels_fit_each_other() {
        for numbers in [Numbers::among(3, 1), Numbers::behind(96), Numbers::among(1, 0)] {
            for level in 0..32 {
                assert_eq!(numbers.level(numbers.turn(level)), level);
            }
        }
        assert_eq!((0..3).map(|level| Numbers::among(3, 1).turn(level)).collect::<Vec<_>>(), [1, 4, 7]);
    }

    #[test]
    fn the_last_turn_in_use_is_freed_whichever_ends() {
        let mut turns = turns();
        let [first, second, third] = [1, 4, 7].map(|turn| turns.begin(turn, 1));
        assert_eq!(turns.end(first), Some(7));
        assert_eq!(turns.end(third), Some(4), "it went on as the first");
        let again = turns.begin(4, 2);
        assert_eq!((turns.end(again), turns.end(second), turns.end(again)), (None, Some(4), Some(1)));
        assert_eq!((turns.end, turns.unused.len()), (0, 4));
    }

    #[test]
    fn a_level_between_may_be_free() {
        let mut turns = turns();
        let [low, high] = [1, 10].map(|turn| turns.begin(turn, 1));
        assert_eq!(turns.end(low), Some(10));
        let next = turns.begin(4, 1);
        assert_eq!((turns.end(next), turns.end(high)), (Some(4), Some(1)));
    }

    #[test]
    fn a_process_that_ends_frees_all_of_them() {
        let mut turns = turns();
        let _ = [1, 7].map(|turn| turns.begin(turn, 3));
        assert_eq!(turns.clear(), [1, 7]);
        let group = turns.begin(1, 1);
        assert_eq!(turns.end(group), Some(1));
    }

    #[test]
    #[should_panic(expected = "turn 4 is in use")]
    fn a_turn_is_in_use_once() {
        let mut turns = turns();
        let _ = [4, 4].map(|turn| turns.begin(turn, 1));
    }
}
