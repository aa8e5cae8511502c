//! How a claimed instance is driven, by whichever thread.
//!
//! Nothing else of the server is named here: the model checker plays these lines with threads of its own
//! (`tests/handover.rs`).

use std::time::Instant;

/// What became of one step of a run.
pub enum Step {
    /// A batch was executed; ask again.
    Again,
    /// Nothing is due before this moment.
    Wait(Instant),
    /// The instance was given back.
    Idle,
}

/// A claimed instance, as its driver sees it.
pub trait Turns {
    /// Takes the next batch, if one is due, and executes it.
    fn step(&self) -> Step;

    /// Sleeps until the moment, or until it is woken.
    fn sleep(&self, until: Instant);

    /// Gives the instance back after a batch. If requests wait, an instance is started for them anew, where it suits.
    fn give_back(&self);
}

/// Drives an instance until it is idle: for a thread that has nothing else to do.
pub fn drive(run: &impl Turns) {
    loop {
        match run.step() {
            Step::Again => {}
            Step::Wait(until) => run.sleep(until),
            Step::Idle => return,
        }
    }
}

/// Drives an instance for one batch: for a thread that others need as well. Gives the run back where it has to wait, for a
/// thread that can.
pub fn drive_once<T: Turns>(run: T) -> Option<T> {
    match run.step() {
        Step::Again => {
            run.give_back();
            None
        }
        Step::Wait(_) => Some(run),
        Step::Idle => None,
    }
}
