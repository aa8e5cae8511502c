//! Another number of workers, while the others go on: who is new is started first, who goes finishes what it holds.

use std::sync::Arc;

use alipes_protocol::InferError;
use alipes_runtime::cancellation::Cancellation;
use alipes_runtime::model::{ModelVersion, PendingQueue};
use alipes_spec::{ModelSpec, WorkerSpec};

use super::worker::Worker;
use super::worker_set::WorkerSet;
use super::worker_turns::Numbers;
use super::{Workers, new_worker};

impl Workers {
    /// Has the instances that the specification names, and no others: those of them that run go on running. A worker
    /// whose instance has another name now keeps the name that it was started with.
    ///
    /// The caller sees to it that there is one change at a time.
    ///
    /// # Errors
    ///
    /// A new worker could not load the model, or the load is cancelled; nothing has changed then.
    pub fn change(
        &self,
        model: &Arc<ModelVersion>,
        spec: &ModelSpec,
        worker: &WorkerSpec,
        cancellation: &Cancellation,
    ) -> Result<(), InferError> {
        let old = self.set.load_full();
        let (mut list, mut fresh) = (Vec::with_capacity(spec.instances.len()), Vec::new());
        let mut numbers = self.free_numbers(&**model.queue(), &old);
        let running = continuing(&old.list, spec);
        for ((index, name), running) in spec.instances.iter().enumerate().zip(running) {
            let one = running.unwrap_or_else(|| {
                let made = new_worker(spec, worker, (index, name), self, numbers.next().unwrap_or(Numbers::behind(0)));
                fresh.push(Arc::new(made));
                Arc::clone(&fresh[fresh.len() - 1])
            });
            list.push(one);
        }
        drop(numbers);
        self.start_all(model, &fresh, cancellation)?;
        self.replace(model, &old, list);
        Ok(())
    }

    /// Puts these workers into service. The others are given nothing more.
    fn replace(&self, model: &Arc<ModelVersion>, old: &WorkerSet, list: Vec<Arc<Worker>>) {
        let stays = |worker: &Arc<Worker>| list.iter().any(|other| Arc::ptr_eq(other, worker));
        let holds = |worker: &Arc<Worker>| {
            let queue = model.queue();
            (0..self.levels).any(|level| !queue.is_free(worker.numbers.turn(level)))
        };
        let going: Vec<_> = old.list.iter().filter(|worker| !stays(worker)).map(Arc::clone).collect();
        let still_going = old.leaving.iter().filter(|worker| holds(worker)).map(Arc::clone);
        let leaving = going.iter().map(Arc::clone).chain(still_going).collect();
        let set = Arc::new(WorkerSet::new(list, leaving, self.levels));
        self.set.store(Arc::clone(&set));
        let effect = model.with_queue(|queue, now| queue.rearrange(now, &set.order(self.levels)));
        model.carry_out(effect);
        for worker in going {
            worker.set_leaving();
            worker.leave_if_done();
        }
    }

    /// Numbers for workers to come: first those of workers that are gone, then such as were never given.
    fn free_numbers(&self, queue: &PendingQueue, set: &WorkerSet) -> impl Iterator<Item = Numbers> + use<> {
        let levels = self.levels;
        let is_free = |numbers: &Numbers| (0..levels).all(|level| queue.is_free(numbers.turn(level)));
        let left: Vec<Numbers> = set.leaving.iter().map(|worker| worker.numbers).filter(is_free).collect();
        let known = set.all().map(|worker| worker.numbers.turn(levels - 1) + 1).max().unwrap_or(0);
        left.into_iter().chain((0..).map(move |more| Numbers::behind(known + more * levels)))
    }
}

/// The workers that go on running, one place for each instance that is wanted: that of its name, or else any that runs
/// where it is to run and is wanted under no other name. Source: Triton, which compares instances without their names.
fn continuing(old: &[Arc<Worker>], spec: &ModelSpec) -> Vec<Option<Arc<Worker>>> {
    let mut left: Vec<&Arc<Worker>> = old.iter().collect();
    let mut take = |name: &str, renamed: bool| {
        let fits = |worker: &&Arc<Worker>| {
            worker.placement == spec.placement(name) && (renamed || worker.source.instance == name)
        };
        left.iter().position(fits).map(|at| Arc::clone(left.remove(at)))
    };
    let mut found: Vec<Option<Arc<Worker>>> = spec.instances.iter().map(|name| take(name, false)).collect();
    for (name, found) in spec.instances.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
        *found = take(name, true);
    }
    found
}
