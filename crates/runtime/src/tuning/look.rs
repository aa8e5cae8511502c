//! One look at a version: its statistics are read, and what its tuner decides is applied to its queue.

use std::sync::Arc;

use alipes_scheduler::Batching;
use alipes_scheduler::tuning::Setting;

use super::reading::Reading;
use crate::model::ModelVersion;

/// Looks at the traffic of a version since the last look, and changes what it is served with.
pub(super) fn look_at(model: &Arc<ModelVersion>) {
    let Some(tuning) = &model.tuning else { return };
    // While somebody changes the instances there is nothing to compare.
    let Some(_unchanged) = model.changing.try_lock() else { return };
    let (loaded, changeable) = match in_process(model) {
        Some(numbers) => (numbers.len(), true),
        None => (model.driver.instances(), false),
    };
    let batch = tuning.setting().batch;
    let reading = Reading::of(&model.statistics, model.waiting(), batch, alipes_clock::now());
    if let Some(setting) = tuning.decide(reading, loaded, changeable) {
        apply(model, setting);
    }
}

fn apply(model: &Arc<ModelVersion>, setting: Setting) {
    let batching = Batching { max_queue_delay: setting.queue_delay, batch: setting.batch };
    let effect = model.with_queue(|queue, now| queue.set_batching(now, batching));
    model.carry_out(effect);
    let Some(mut numbers) = in_process(model) else { return };
    numbers.truncate(setting.instances);
    let effect = model.with_queue(|queue, now| queue.rearrange(now, &numbers));
    model.carry_out(effect);
}

/// The numbers of the loaded copies, where they are in this process: there it costs nothing to leave one idle.
fn in_process(model: &ModelVersion) -> Option<Vec<usize>> {
    let instances = model.driver.local_instances()?;
    let is_loaded = |number: &usize| instances.get(*number).is_some();
    Some((0..).filter(is_loaded).take(instances.count()).collect())
}
