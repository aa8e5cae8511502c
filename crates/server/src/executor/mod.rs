//! Who drives a claimed instance: the network thread itself for quick models, else a thread of the pool.

pub mod alarm;
pub mod answer;
pub mod desk;
mod exchange;
mod lock;
pub mod mailbox;
pub mod nap;
pub mod order;
pub mod pool;
pub mod reshape;
mod turns;

use std::sync::Arc;
use std::time::Instant;

use alipes_scheduler::Next;

use crate::driver_native::execute;
use crate::driver_native::slots::InstanceSlot;
use crate::limiter::Limited;
use crate::model::{Drivers, ModelVersion};
use crate::workers::place;
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
        match &self.model.drivers {
            Drivers::Native(slots) => slots.with(self.instance, |slot| self.step_with(slot)).unwrap_or_else(|| {
                // Out of service since it was claimed.
                if let Some(limited) = &self.model.limited {
                    limited.end_use(self.instance, false);
                }
                self.give_back();
                Step::Idle
            }),
            Drivers::Workers(workers) => match place::drive(&self.model, workers, self.instance) {
                Some(until) => Step::Wait(until),
                None => Step::Idle,
            },
            Drivers::Streaming(streaming) => streaming.help(&self.model),
            Drivers::Ensemble(ensemble) => ensemble.drive(&self.model, self.instance),
        }
    }

    fn sleep(&self, until: Instant) {
        self.model.sleep(self.instance, until);
    }

    fn give_back(&self) {
        let effect = self.model.with_queue(|queue, now| queue.finish(now, self.instance));
        self.model.carry_out(effect);
    }
}

impl Run {
    fn step_with(&self, slot: &InstanceSlot) -> Step {
        let limited = self.model.limited.as_ref();
        if limited.is_some_and(|limited| !limited.ask(&self.model, self.instance)) {
            // Still claimed; driven again when it may execute.
            return Step::Idle;
        }
        let mut state = slot.state.lock();
        let (next, effect) = self.model.with_queue(|queue, now| queue.next(now, self.instance, &mut state.batch));
        self.model.carry_out(effect);
        match next {
            Next::Take => {
                execute::execute(&self.model, &mut state);
                match limited {
                    None => Step::Again,
                    Some(limited) => {
                        drop(state);
                        self.take_turns(limited)
                    }
                }
            }
            Next::WaitUntil(until) => {
                self.leave_limiter();
                Step::Wait(until)
            }
            Next::Idle => {
                self.leave_limiter();
                Step::Idle
            }
        }
    }

    /// After an execution that took resources: others have their turns before the next one.
    fn take_turns(&self, limited: &Limited) -> Step {
        if self.model.waiting() > 0 {
            limited.take_turns(&self.model, self.instance);
        } else {
            limited.end_use(self.instance, true);
            self.give_back();
        }
        Step::Idle
    }

    /// What was granted was not needed.
    fn leave_limiter(&self) {
        if let Some(limited) = &self.model.limited {
            limited.give_back(self.instance);
        }
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
