//! Threads for claimed instances: the network thread itself for quick models, else a thread of the pool.

pub mod alarm;
mod drive_loop;
mod exchange;
mod following;
mod lock;
pub mod park;
pub mod pool;
pub mod record;
pub mod reshape;
pub mod run_queue;

use std::sync::Arc;
use std::time::Instant;

use crate::model::ModelVersion;
use drive_loop::Claimed;
pub use drive_loop::Step;
pub use pool::collect;

/// A claimed instance, to be driven until it is idle.
pub struct Run {
    /// Its model version.
    pub model: Arc<ModelVersion>,
    /// Its number in the version's queue.
    pub instance: usize,
}

impl Claimed for Run {
    fn step(&self) -> Step {
        let step = self.model.driver.step(&self.model, self.instance);
        pool::see_to_following(|| matches!(step, Step::Again) && self.model.waiting() > 0);
        step
    }

    fn park(&self, until: Instant) {
        self.model.driver.park(self.instance, until);
    }

    fn release(&self) {
        self.model.release(self.instance);
    }
}

/// Starts a claimed instance: on this network thread where the model is quick, else in the pool.
pub fn start(run: Run) {
    if run.model.pace.is_quick() { start_quick(run) } else { pool::drive(run) }
}

/// Starts a run that is known to be quick: on this thread where it is a network thread, or one of the pool that
/// collects what its execution starts; else in the pool.
pub fn start_quick(run: Run) {
    if let Err(run) = run_queue::push(run).or_else(pool::collected) {
        pool::drive(run);
    }
}
