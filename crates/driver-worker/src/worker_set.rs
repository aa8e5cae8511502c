//! The workers of a model version at one moment, and the worker that each turn number belongs to.

use std::sync::Arc;

use super::worker::Worker;

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

    /// The worker that a turn belongs to.
    ///
    /// # Panics
    ///
    /// If no worker has the turn: a claimed turn has a worker.
    pub fn turn(&self, turn: usize) -> &Arc<Worker> {
        self.by_turn[turn].as_ref().expect("a claimed turn is somebody's")
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Worker>> {
        self.list.iter().chain(&self.leaving)
    }
}
