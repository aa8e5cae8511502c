//! Instances of an ensemble's models that a batch has for itself.

use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;

use crate::driver_native::slots::InstanceSlot;
use crate::model::{Drivers, ModelVersion};

/// An instance for each model, by the model's number among the ensemble's.
pub type Claims = SmallVec<[Claim; 4]>;

/// An instance that is nobody else's. Dropping it gives it back.
pub struct Claim {
    /// Whose it is.
    pub model: Arc<ModelVersion>,
    /// The instance.
    pub slot: Arc<InstanceSlot>,
    number: usize,
}

impl Claim {
    /// Takes note of what the instance is to run.
    pub fn note(&self, now: Instant, requests: usize, rows: u32) {
        self.model.queue().note_fused(now, self.number, requests, u64::from(rows));
    }
}

/// An instance of each of these models; none of any where one has none that is free.
pub fn all(models: &[Arc<ModelVersion>]) -> Option<Claims> {
    models.iter().map(claim).collect()
}

fn claim(model: &Arc<ModelVersion>) -> Option<Claim> {
    let Drivers::Native(slots) = &model.drivers else { return None };
    let number = model.queue().claim()?;
    match slots.get(number) {
        Some(slot) => Some(Claim { model: Arc::clone(model), slot, number }),
        None => {
            // Out of service since it was claimed.
            give_back(model, number);
            None
        }
    }
}

fn give_back(model: &Arc<ModelVersion>, number: usize) {
    let effect = model.with_queue(|queue, now| queue.finish(now, number));
    model.carry_out(effect);
}

impl Drop for Claim {
    fn drop(&mut self) {
        give_back(&self.model, self.number);
    }
}
