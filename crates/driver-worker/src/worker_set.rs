//! The workers of a model version at one moment, and the worker that each turn number belongs to.

use std::sync::Arc;

use super::worker::Worker;

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

/// The workers of a version. Replaced as a whole when workers are added or removed.
pub struct WorkerSet {
    /// Those in service, one per instance.
    pub list: Vec<Arc<Worker>>,
    /// Those that finish the requests that they hold, and then leave.
    pub leaving: Vec<Arc<Worker>>,
    by_turn: Vec<Option<Arc<Worker>>>,
}

impl WorkerSet {
    /// These workers, each with a turn at every level.
    pub fn new(list: Vec<Arc<Worker>>, leaving: Vec<Arc<Worker>>, levels: usize) -> WorkerSet {
        let turns = |worker: &Arc<Worker>| (0..levels).map(|level| worker.numbers.turn(level)).collect::<Vec<_>>();
        let known = list.iter().chain(&leaving).flat_map(turns).max().map_or(0, |last| last + 1);
        let mut by_turn = vec![None; known];
        for worker in list.iter().chain(&leaving) {
            turns(worker).into_iter().for_each(|turn| by_turn[turn] = Some(Arc::clone(worker)));
        }
        WorkerSet { list, leaving, by_turn }
    }

    /// The turns in the order in which they are to be claimed: level by level, so that the worker with the least to do
    /// comes first.
    pub fn order(&self, levels: usize) -> Vec<usize> {
        (0..levels).flat_map(|level| self.list.iter().map(move |worker| worker.numbers.turn(level))).collect()
    }

    /// The worker that a turn belongs to, and the turn's level there.
    ///
    /// # Panics
    ///
    /// If no worker has the turn: a claimed turn has a worker.
    pub fn turn(&self, turn: usize) -> (&Arc<Worker>, usize) {
        let worker = self.by_turn[turn].as_ref().expect("a claimed turn is somebody's");
        (worker, worker.numbers.level(turn))
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Worker>> {
        self.list.iter().chain(&self.leaving)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_and_levels_fit_each_other() {
        for numbers in [Numbers::among(3, 1), Numbers::behind(96), Numbers::among(1, 0)] {
            for level in 0..32 {
                assert_eq!(numbers.level(numbers.turn(level)), level);
            }
        }
        assert_eq!((0..3).map(|level| Numbers::among(3, 1).turn(level)).collect::<Vec<_>>(), [1, 4, 7]);
    }
}
