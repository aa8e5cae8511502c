//! Instances of an ensemble's models that a batch has for itself.

use std::sync::Arc;
use std::time::Instant;

use alipes_runtime::model::ModelVersion;
use alipes_runtime::model::driver::Instance;
use smallvec::SmallVec;

/// By the number of each part: an instance of it, where one is needed.
pub type Claims = SmallVec<[Option<Claim>; 4]>;

/// An instance that is nobody else's. Dropping it gives it back.
pub struct Claim {
    /// Whose it is.
    pub model: Arc<ModelVersion>,
    /// The instance.
    pub instance: Arc<dyn Instance>,
    number: usize,
}

impl Claim {
    /// Takes note of what the instance is to run.
    pub fn note(&self, now: Instant, requests: usize, rows: u32) {
        self.model.queue().note_fused(now, self.number, requests, u64::from(rows));
    }
}

/// An instance of each of these parts; none of any where one has none that is free.
pub fn all(parts: &[Arc<ModelVersion>], needed: &[usize]) -> Option<Claims> {
    let one = |(number, part)| if needed.contains(&number) { claim(part).map(Some) } else { Some(None) };
    parts.iter().enumerate().map(one).collect()
}

fn claim(model: &Arc<ModelVersion>) -> Option<Claim> {
    let instances = model.driver.local_instances()?;
    let number = model.queue().claim()?;
    match instances.get(number) {
        Some(instance) => Some(Claim { model: Arc::clone(model), instance, number }),
        None => {
            // Taken out of service after the claim.
            model.release(number);
            None
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.model.release(self.number);
    }
}
