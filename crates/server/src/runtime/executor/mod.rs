//! Who drives a claimed instance: the network thread itself for quick models, else a thread of the pool.

pub mod alarm;
mod exchange;
mod lock;
pub mod nap;
pub mod pool;
pub mod record;
pub mod reshape;
pub mod run_queue;
mod turns;

use std::sync::Arc;
use std::time::Instant;

pub use crate::request::{mailbox, order, responder as answer};
use crate::runtime::model::ModelVersion;
pub use turns::Step;
use turns::Turns;

/// An instance that was claimed and has to be driven until it is idle again.
pub struct Run {
    /// Whose instance.
    pub model: Arc<ModelVersion>,
    /// Which one.
    pub instance: usize,
}

impl Turns for Run {
    fn step(&self) -> Step {
        self.model.driver.step(&self.model, self.instance)
    }

    fn sleep(&self, until: Instant) {
        self.model.driver.park(self.instance, until);
    }

    fn give_back(&self) {
        self.model.release(self.instance);
    }
}

/// Starts a claimed instance: on this network thread where the model is quick, else in the pool.
pub fn start(run: Run) {
    if run.model.pace.is_quick() { start_quick(run) } else { pool::drive(run) }
}

/// Starts a run that is known to be quick: on this thread where it is a network thread, else in the pool.
pub fn start_quick(run: Run) {
    if let Err(run) = run_queue::push(run) {
        pool::drive(run);
    }
}
