//! Who drives a claimed instance: the network thread itself for quick models, else a thread of the pool.

pub mod alarm;
pub mod desk;
mod exchange;
mod lock;
pub mod nap;
pub mod pool;
pub mod record;
pub mod reshape;
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

/// Has a claimed instance driven: on this network thread where the model is quick, else in the pool.
pub fn start(run: Run) {
    match desk::current() {
        Some(desk) if run.model.pace.is_quick() => desk.run(run),
        _ => pool::drive(run),
    }
}

/// Has requests taken through all steps of an ensemble at once, which is quick.
pub fn start_fused(run: Run) {
    match desk::current() {
        Some(desk) => desk.run(run),
        None => pool::drive(run),
    }
}
