//! Native steps for the instances of a model.

use alipes_engine::{Engine, EngineError};
use alipes_spec::{ModelSpec, NativeSpec};
use alipes_steps::LoadedStep;

/// A number of instances, which share what was loaded.
///
/// # Errors
///
/// The model's tensors are not the step's.
pub fn steps(spec: &ModelSpec, engine: &NativeSpec, count: usize) -> Result<Vec<Box<dyn Engine>>, EngineError> {
    let step = LoadedStep::open(spec, &engine.step)?;
    Ok((0..count).map(|_| step.instance()).collect())
}
