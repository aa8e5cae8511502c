//! Warm-up samples, executed on the instances of this process.

use std::sync::Arc;
use std::thread;

use alipes_protocol::InferError;
use alipes_request::mailbox;
use alipes_request::responder::Responder;
use alipes_runtime::cancellation::Cancellation;
use alipes_runtime::model::ModelVersion;
use alipes_runtime::model::warmup::Sample;
use alipes_stats::priority::{self, Priority};

use super::execute;
use super::slots::InstanceSlot;

/// Executes the samples on instances that do not serve yet, all instances in parallel. They have these names.
///
/// # Errors
///
/// As for [`Sample::judge`]; `Unavailable` where the load is cancelled.
pub fn warm_up(
    model: &ModelVersion,
    slots: &[Arc<InstanceSlot>],
    names: &[&str],
    cancellation: &Cancellation,
) -> Result<(), InferError> {
    if model.samples.is_empty() {
        return Ok(());
    }
    let execute = |slot: &InstanceSlot, name: &str| {
        priority::set(Priority::Compute);
        let execute = |sample: &Sample, number| {
            cancellation.check()?;
            sample.announce(model, name, number);
            execute_on(model, slot, sample)
        };
        model.samples.iter().try_for_each(|sample| (0..sample.count).try_for_each(|number| execute(sample, number)))
    };
    thread::scope(|scope| {
        let warming: Vec<_> = slots.iter().zip(names).map(|(slot, name)| scope.spawn(|| execute(slot, name))).collect();
        let panicked = |_| Err(InferError::internal("warming an instance up panicked, please report it"));
        warming.into_iter().try_for_each(|warming| warming.join().unwrap_or_else(panicked))
    })
}

fn execute_on(model: &ModelVersion, slot: &InstanceSlot, sample: &Sample) -> Result<(), InferError> {
    let mut state = slot.state.lock();
    let (batch, answers): (Vec<_>, Vec<_>) = (0..sample.requests)
        .map(|number| {
            let (responder, answer) = Responder::unary();
            (sample.pending(number, responder), answer)
        })
        .unzip();
    state.batch = batch;
    execute::execute(model, &mut state);
    sample.judge(answers.into_iter().map(|mut answer| answer.try_recv().unwrap_or_else(|_| Err(mailbox::lost()))))
}
